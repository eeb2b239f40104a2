//! Tests bytes that are not a policy. Each defect has its own error, and the host finds the defect before compilation.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::Write;

use crate::support::{WIT, dummy, engine, hostile, load};
use flate2::{Compression, write::GzEncoder};
use kaos_policy::{
    engine::Engine,
    gate::{Bounds, Candidate, InspectError, LoadError, Part, SizeClass, inspect},
    manifest::PolicyFile,
};

fn refusal(bytes: &[u8]) -> InspectError {
    inspect(bytes, &Bounds::default()).expect_err("the bytes are not a policy")
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn policy() -> Vec<u8> {
    dummy(WIT, "policy", Some("0.1.0"))
}

#[test]
fn the_unchanged_worlds_are_recognized() {
    let seen = inspect(&policy(), &Bounds::default()).unwrap();
    assert_eq!((seen.world.name(), seen.contract.as_str()), ("policy", "0.1.0"));
    let overlay = dummy(WIT, "overlay", Some("0.1.3"));
    assert_eq!(inspect(&overlay, &Bounds::default()).unwrap().world.name(), "overlay");
}

#[test]
fn bytes_that_are_no_component_are_named_by_their_format() {
    let module = wat::parse_str("(module)").unwrap();
    assert_eq!(refusal(&module), InspectError::CoreModule);
    assert_eq!(refusal(b"  (component)"), InspectError::TextFormat);
    assert_eq!(refusal(b";; text\n(module)"), InspectError::TextFormat);
    assert_eq!(refusal(b""), InspectError::NotWasm);
    assert_eq!(refusal(b"\x7fELF..."), InspectError::NotWasm);
    let compiled = engine().compile(&wat::parse_str("(component)").unwrap()).unwrap();
    assert_eq!(refusal(&compiled), InspectError::Precompiled);
    assert_eq!(refusal(&wat::parse_str("(component)").unwrap()), InspectError::NotAPolicy);
}

#[test]
fn a_component_that_is_cut_off_anywhere_is_refused() {
    let whole = hostile("well-behaved");
    for length in (0..whole.len()).step_by(1024) {
        let told = refusal(&whole[..length]);
        // If the bytes end between two sections, they form a valid but incomplete component.
        let expected = |told: &InspectError| match told {
            InspectError::NotWasm => length == 0,
            InspectError::Malformed { .. } | InspectError::NotAPolicy | InspectError::MissingInterfaces(_) => {
                length > 0
            }
            _ => false,
        };
        assert!(expected(&told), "cut off at {length}: {told}");
    }
}

#[test]
fn imports_of_wasi_and_of_anything_else_are_named() {
    let with = |package: &str, import: &str| {
        format!("{}\n{package}", WIT.replacen("world policy {", &format!("world policy {{ import {import};"), 1))
    };
    let custom = WIT.replacen("world policy {", "interface door { open: func(); }\nworld policy { import door;", 1);
    let Err(InspectError::Imports(names)) = inspect(&dummy(&custom, "policy", Some("0.1.0")), &Bounds::default())
    else {
        panic!()
    };
    assert_eq!(names, ["kaos:policy/door@0.1.0"]);
    let wasi = with(
        "package wasi:clocks@0.2.0 { interface wall-clock { now: func() -> u64; } }",
        "wasi:clocks/wall-clock@0.2.0",
    );
    let Err(InspectError::ImportsWasi(names)) = inspect(&dummy(&wasi, "policy", Some("0.1.0")), &Bounds::default())
    else {
        panic!()
    };
    assert_eq!(names, ["wasi:clocks/wall-clock@0.2.0"]);
}

#[test]
fn another_version_is_reported_before_any_other_defect() {
    let newer = WIT.replace("package kaos:policy@0.1.0", "package kaos:policy@0.2.0");
    let error = refusal(&dummy(&newer, "policy", Some("0.2.0")));
    assert_eq!(error, InspectError::WrongVersion { speaks: "0.2".to_owned() });
    assert_eq!(error.to_string(), "the policy uses contract kaos:policy 0.2, but this program supports only 0.1");
    assert_eq!(refusal(&dummy(&newer, "policy", None)), error);
    assert!(matches!(refusal(&dummy(WIT, "policy", Some("0.2.0"))), InspectError::MixedVersions { .. }));
}

#[test]
fn a_draft_of_the_contract_is_refused_with_a_reason() {
    let draft = WIT.replace("package kaos:policy@0.1.0", "package kaos:policy@0.1.0-draft.3");
    let error = refusal(&dummy(&draft, "policy", Some("0.1.0-draft.3")));
    assert_eq!(error, InspectError::Unreleased { speaks: "0.1.0-draft.3".to_owned() });
    let told = "the policy uses contract kaos:policy 0.1.0-draft.3, which is not released, but this program supports \
        0.1: build the policy with the SDK of a released version";
    assert_eq!(error.to_string(), told);
    assert!(matches!(refusal(&dummy(&draft, "policy", Some("0.1.0"))), InspectError::MixedVersions { .. }));
}

#[test]
fn an_optional_interface_that_the_host_does_not_know_is_ignored() {
    let more = WIT.replacen("world policy {", "interface advice { advise: func(); }\nworld policy { export advice;", 1);
    assert_eq!(inspect(&dummy(&more, "policy", Some("0.1.0")), &Bounds::default()).unwrap().world.name(), "policy");
}

#[test]
fn a_missing_interface_is_named() {
    let without = WIT.replacen("    export translation;\n", "", 1);
    assert_eq!(
        refusal(&dummy(&without, "policy", Some("0.1.0"))),
        InspectError::MissingInterfaces(vec!["translation".to_owned()])
    );
}

#[test]
fn a_component_of_both_worlds_is_refused() {
    let both = WIT.replacen("    export translation;\n", "    export translation;\n    export amendment;\n", 1);
    assert_eq!(refusal(&dummy(&both, "policy", Some("0.1.0"))), InspectError::TwoWorlds);
}

#[test]
fn a_record_with_an_extra_field_is_refused_at_instantiation_at_the_latest() {
    let more = WIT.replace("record blocker { on: reference,", "record blocker { since: string, on: reference,");
    assert_ne!(more, WIT);
    assert!(matches!(
        load(dummy(&more, "policy", Some("0.1.0"))),
        Err(LoadError::Engine(_) | LoadError::Instantiate(_))
    ));
}

#[test]
fn too_many_bytes_are_not_unpacked() {
    let bounds = Bounds::default();
    assert!(matches!(load(vec![0; bounds.bytes + 1]), Err(LoadError::TooLarge { .. })));
    let bomb = gzip(&vec![0; bounds.bytes * 4]);
    assert!(bomb.len() < 1 << 20);
    assert_eq!(load(bomb).unwrap_err(), LoadError::UnpacksTooLarge { limit: bounds.bytes });
    let mut damaged = gzip(&policy());
    damaged.truncate(damaged.len() / 2);
    assert!(matches!(load(damaged), Err(LoadError::BadGzip(_))));
}

#[test]
fn a_packed_policy_is_the_same_policy() {
    let policy = hostile("well-behaved");
    assert_eq!(load(gzip(&policy)).unwrap().id(), load(policy).unwrap().id());
}

#[test]
fn a_function_that_would_take_long_to_compile_is_refused_unread() {
    let mut body = String::from("(module (func (export \"f\") (result i32) i32.const 1");
    body.push_str(&" i32.const 3 i32.add".repeat(300_000));
    body.push_str("))");
    let bomb = wat::parse_str(format!("(component (core {}", &body[1..]).to_owned() + ")").unwrap();
    assert!(bomb.len() > 900_000);
    assert!(matches!(refusal(&bomb), InspectError::FunctionTooLarge { bytes, .. } if bytes > 900_000));
}

#[test]
fn functions_of_an_interpreter_need_the_large_class_which_has_limits_too() {
    let component = |additions: usize| {
        let body = " i32.const 3 i32.add".repeat(additions);
        let text = format!("(component (core module (func (export \"f\") (result i32) i32.const 1{body})))");
        wat::parse_str(text).unwrap()
    };
    let refused = |additions, size: SizeClass| inspect(&component(additions), &size.bounds()).unwrap_err();
    let (medium, large) = (100_000, 200_000);
    for (additions, size, limit) in [
        (medium, SizeClass::Standard, 128 << 10),
        (large, SizeClass::Standard, 128 << 10),
        (large, SizeClass::Large, 512 << 10),
    ] {
        let told = refused(additions, size);
        assert!(matches!(told, InspectError::FunctionTooLarge { limit: of, .. } if of == limit), "{told:?}");
    }
    // The bounds accept the function, and a later check finds that the component is no policy.
    assert_eq!(refused(medium, SizeClass::Large), InspectError::NotAPolicy);
    assert!(SizeClass::Large.bounds().bytes == 24 << 20 && SizeClass::Large.code() == 64 << 20);
}

#[test]
fn parts_are_counted() {
    let many = format!("(component {})", "(core module)".repeat(100));
    assert!(matches!(refusal(&wat::parse_str(many).unwrap()), InspectError::TooMany { part: Part::Modules, .. }));
}

/// Returns the error for a component with this WebAssembly text and a valid version of the contract.
fn refusal_of(text: &str) -> InspectError {
    let mut component = wat::parse_str(format!("(component {text})")).unwrap();
    let version = wasm_encoder::CustomSection { name: "kaos:policy".into(), data: b"0.1.0".into() };
    wasm_encoder::Section::append_to(&version, &mut component);
    refusal(&component)
}

#[test]
fn parts_that_make_type_checks_slow_are_counted_before_any_check() {
    let endless = refusal(&crate::support::endless_types(1000));
    assert_eq!(endless, InspectError::TooMany { part: Part::Instances, count: 1000, limit: 500 });
    let name = "n".repeat(80_000);
    for text in [
        format!("(type (record (field \"{name}\" u8)))"),
        format!("(type (variant (case \"{name}\")))"),
        format!("(type (func (param \"{name}\" u8)))"),
        format!("(type (instance (export \"{name}\" (func))))"),
        format!("(import \"{name}\" (func))"),
        format!("(component $c) (instance (instantiate $c (with \"{name}\" (component $c))))"),
    ] {
        let told = refusal_of(&text);
        assert!(matches!(told, InspectError::NameTooLong { bytes: 80_000, limit: 256, .. }), "{told:?}");
    }
    let many = |text: &str, part: Part| {
        let told = refusal_of(text);
        assert!(matches!(told, InspectError::TooMany { part: of, .. } if of == part), "{part}: {told:?}");
    };
    many(&format!("(component $c) {}", "(instance (instantiate $c))".repeat(501)), Part::Instances);
    let fields = (0..9_000).map(|n| format!("(field \"f{n}\" u8)")).collect::<Vec<_>>().concat();
    many(&format!("(type (record {fields}))").repeat(3), Part::Members);
    many(&format!("{}{}", "(component ".repeat(9), ")".repeat(9)), Part::Levels);
    many(&format!("{}{}", "(type (component ".repeat(9), "))".repeat(9)), Part::Levels);
}

#[test]
fn bytes_with_another_digest_than_the_pinned_one_are_refused() {
    let file = PolicyFile { sha256: Some(kaos_policy::digest::Digest::of(b"others")), ..PolicyFile::default() };
    let error = crate::support::load_with(&Candidate { bytes: policy(), file, ..Candidate::default() }).unwrap_err();
    assert!(matches!(error, LoadError::WrongDigest { .. }));
}

#[test]
fn the_compiling_and_the_running_engine_have_the_same_fingerprint() {
    assert_eq!(Engine::compiling().unwrap().fingerprint(), engine().fingerprint());
}
