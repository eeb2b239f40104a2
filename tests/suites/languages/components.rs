//! Checks that `policy build` accepts a component that imports WASI, and that the resulting policy answers like the
//! same policy without WASI. The policy gets no files, no variables and no input from WASI.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use kaos_policy::code::Code;
use kaos_policy::failure::{Failure, Verb};
use kaos_policy::gate::CodeForm;
use kaos_policy::native_code;
use kaos_tests::control_plane::programs::Programs;
use kaos_tests::websites;

use super::hostile::{translated, words};

/// Builds a policy for the target `wasm32-wasip2`, for which Rust builds components instead of modules.
fn for_wasip2(arguments: &[&str], file: &str) -> PathBuf {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let target = top.join("target/tmp/guests");
    let built = Command::new(env!("CARGO"))
        .args(["build", "--locked", "--quiet", "--release", "--target", "wasm32-wasip2"])
        .args(arguments)
        .arg("--target-dir")
        .arg(&target)
        .current_dir(top.join("guest-policies"))
        .env_remove("CARGO_TARGET_DIR")
        .env_remove("RUSTFLAGS")
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    target.join("wasm32-wasip2/release").join(file)
}

fn website() -> PathBuf {
    for_wasip2(&["--package", "website-policy"], "website_policy.wasm")
}

fn out(file: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(file)
}

fn operator(arguments: &[&str]) -> Output {
    Command::new(Programs::operator().unwrap()).args(arguments).output().unwrap()
}

#[test]
fn a_component_for_wasi_becomes_a_policy_that_imports_nothing() {
    let (component, policy) = (website(), out("website-wasip2.wasm"));
    let [from, to] = [&component, &policy].map(|path| path.to_str().unwrap());
    let refused = operator(&["policy", "check", from]);
    let told = String::from_utf8_lossy(&refused.stdout);
    assert!(!refused.status.success() && told.contains("wasi:"), "{told}");

    let built = operator(&["policy", "build", from, "-o", to]);
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let policy = websites::load(CodeForm::Component, fs::read(&policy).unwrap());
    let native = native_code!(kaos_policy_sdk, website_policy::Website);
    websites::same_plans(policy.code(), &native);
    websites::same_reports(policy.code(), &native);
}

/// Replaces all occurrences of one text by another text of the same length.
fn replaced(bytes: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
    assert_eq!(old.len(), new.len());
    let (mut replaced, mut count) = (bytes.to_vec(), 0);
    for at in 0..=bytes.len() - old.len() {
        if bytes[at..].starts_with(old) {
            replaced[at..at + new.len()].copy_from_slice(new);
            count += 1;
        }
    }
    assert!(count > 0, "the component has no {}", old.escape_ascii());
    replaced
}

#[test]
fn a_component_for_another_contract_of_the_same_version_is_refused() {
    // Swap two fields of a record in the component's types. Both fields have the type string (0x73).
    let other =
        replaced(&fs::read(website()).unwrap(), b"\x0bapi-version\x73\x04kind\x73", b"\x04kind\x73\x0bapi-version\x73");
    let component = out("website-other-contract.wasm");
    fs::write(&component, other).unwrap();
    let refused = operator(&["policy", "build", component.to_str().unwrap(), "-o", "/dev/null"]);
    let told = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && told.contains("another contract of the same version"), "{told}");
    assert!(told.contains("`kind: string,` where this operator has `api-version: string,`"), "{told}");
}

#[test]
fn a_hostile_component_for_wasi_finds_no_outside_world() {
    let component = for_wasip2(&["--package", "kaos-policy-sdk", "--example", "wasi"], "examples/wasi.wasm");
    let policy = out("hostile-wasip2.wasm");
    let [from, to] = [&component, &policy].map(|path| path.to_str().unwrap());
    let refused = operator(&["policy", "build", from, "-o", to]);
    let told = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && told.contains("-at") && told.contains("a policy has no files"), "{told}");
    let built = operator(&["policy", "build", "--stub-wasi", from, "-o", to]);
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));

    let policy = websites::load(CodeForm::Component, fs::read(&policy).unwrap());
    let code = policy.code();
    for (title, parts) in [
        ("panic", ["panicked at sdk/examples/wasi.rs:", "the kite is gone"]),
        ("exit", ["the policy ended its process: ", "it must return an answer"]),
        ("chatter and exit", ["chatter 999", "the kite is gone"]),
        ("random", ["the policy asked for random numbers: ", "its answer must depend only on its input"]),
        ("nothing to wait for", ["the policy waits for an event, ", "but lists no event"]),
        ("network", ["unreachable", ""]),
    ] {
        let told = words(code, title);
        assert!(parts.iter().all(|part| told.contains(part)), "{title}: {told}");
    }
    for (title, wanted) in [
        ("clock", vec!["now = 0", "slept = true"]),
        ("random once", vec!["random = 3038287259199220266"]),
        ("chatter", vec!["sum = 19999900000"]),
        ("outside", vec!["file = false", "environment = 0", "input = 0"]),
    ] {
        assert_eq!(notes(code, title), wanted, "{title}");
        assert_eq!(notes(code, title), wanted, "{title}: two sandboxes differ");
    }
    assert_eq!(notes(code, "hash"), notes(code, "hash"));
    let memory = translated(code, "memory");
    assert!(matches!(memory, Err(Failure::OutOfMemory { verb: Verb::Translate, .. })), "{memory:?}");
}

fn notes(code: &dyn Code, title: &str) -> Vec<String> {
    let plan = translated(code, title).unwrap().unwrap();
    plan.notes.into_iter().map(|note| note.message).collect()
}
