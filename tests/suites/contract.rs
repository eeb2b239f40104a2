//! Checks that the contract changes only together with its version.
//!
//! For each released VERSION of the contract, `tests/contract/VERSION.wit` contains the contract with which authors
//! built their components. If a change added a field to a record, the operator could no longer load these components.
//! So the current contract must contain every interface and every WIT world of `tests/contract/VERSION.wit`, and only
//! their comments may change. The current contract may have further interfaces and WIT worlds.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use wit_component::{OutputToString, WitPrinter};
use wit_parser::Resolve;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns the version of the WIT package, and the text of each interface and WIT world, without comments.
fn read(path: &Path) -> (String, BTreeMap<String, String>) {
    let mut resolve = Resolve::default();
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let package = resolve.push_str(path, &text).expect("the contract parses");
    let version = resolve.packages[package].name.version.clone().expect("the contract has a version").to_string();
    let mut printer = WitPrinter::new(OutputToString::default());
    printer.emit_docs(false);
    printer.print(&resolve, package, &[]).expect("the contract prints");
    let printed = printer.output.to_string();
    let mut items = BTreeMap::new();
    let mut open: Option<(String, String)> = None;
    for line in printed.lines() {
        if let Some((_, text)) = &mut open {
            text.push_str(line);
            text.push('\n');
        } else if line.starts_with("interface ") || line.starts_with("world ") {
            open = Some((line.trim_end_matches(" {").to_owned(), format!("{line}\n")));
        }
        if line == "}" {
            items.extend(open.take());
        }
    }
    assert!(items.len() >= 2, "the printed contract has no interface and no world:\n{printed}");
    (version, items)
}

#[test]
fn a_released_interface_changes_only_with_its_version() {
    let (version, now) = read(&root().join("wit/policy.wit"));
    let kept = root().join(format!("tests/contract/{version}.wit"));
    assert!(
        kept.exists(),
        "version {version} is new: keep a copy of its contract with `cp wit/policy.wit tests/contract/{version}.wit`"
    );
    let (_, released) = read(&kept);
    for (item, text) in released {
        let Some(current) = now.get(&item) else {
            panic!("{item} of {version} is gone: restore it, or give wit/policy.wit a new version");
        };
        assert_eq!(
            &text, current,
            "{item} differs from the contract of {version}: restore {item}, or give wit/policy.wit a new version"
        );
    }
}

#[test]
fn kept_contracts_are_filed_under_their_own_version() {
    for entry in std::fs::read_dir(root().join("tests/contract")).unwrap() {
        let path = entry.unwrap().path();
        let (version, _) = read(&path);
        assert_eq!(path.file_stem().unwrap().to_str(), Some(version.as_str()));
    }
}

#[test]
fn the_sdk_speaks_the_version_of_the_contract() {
    let (version, _) = read(&root().join("wit/policy.wit"));
    assert_eq!(version, kaos_policy_sdk::CONTRACT_VERSION);
}
