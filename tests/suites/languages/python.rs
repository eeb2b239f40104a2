//! Checks that the template in Python passes its own tests, and answers like the template in Rust, byte for byte.

use kaos_policy::failure::{Failure, Verb};
use kaos_policy::gate::CodeForm;
use kaos_policy::limits::Limits;
use kaos_policy::native_code;
use kaos_tests::websites;
use serde_json::json;

use super::hostile::{translated, words};
use super::project::Project;

/// Code that the test puts at the beginning of `translate`. The title of the object chooses an action that the sandbox
/// must prevent. The code tries this action, and raises an exception with the result.
const HOSTILE: &str = include_str!("hostile.py");

#[test]
fn the_template_in_python_answers_like_the_template_in_rust_and_reports_exceptions() {
    let project = Project::new("python");
    let tested = project.run("sh", &["test.sh"]);
    assert!(tested.status.success(), "{tested:?}");
    let policy = project.path("policy.py");
    let source = std::fs::read_to_string(&policy).unwrap();
    let broken = "    assert json.loads(subject.object)[\"spec\"].get(\"title\") != \"bug\", \"the kite is gone\"\n";
    let (before, after) = source.split_once("    object, settings = ").unwrap();
    project.write("policy.py", &format!("{before}{broken}    object, settings = {after}"));
    let component = project.build();

    let refused = project.operator(["policy", "check", "website.wasm"]);
    let told = String::from_utf8_lossy(&refused.stdout);
    assert!(!refused.status.success() && told.contains("--large-policies"), "{told}");

    let policy = websites::load(CodeForm::Component, component);
    let rust = native_code!(kaos_policy_sdk, website_policy::Website);
    websites::same_plans(policy.code(), &rust);
    websites::same_reports(policy.code(), &rust);

    let mut sandbox = policy.code().open(&Limits::default()).unwrap();
    sandbox.begin(&websites::subject(&websites::blog(), &json!({"title": "bug"}))).unwrap();
    match sandbox.translate(Vec::new()) {
        Err(Failure::Trap { verb: Verb::Translate, reason }) => {
            assert!(
                reason.starts_with("policy.py:") && reason.ends_with("AssertionError: the kite is gone"),
                "{reason}"
            );
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_hostile_policy_in_python_finds_no_outside_world_and_ends_at_its_limits() {
    let project = Project::new("python");
    let source = std::fs::read_to_string(project.path("policy.py")).unwrap();
    let (before, after) = source.split_once("    object, settings = ").unwrap();
    let call = "    hostile(json.loads(subject.object)[\"spec\"].get(\"title\"))\n";
    project.write("policy.py", &format!("{before}{call}    object, settings = {after}\n\n{HOSTILE}"));
    let policy = websites::load(CodeForm::Component, project.build());
    let code = policy.code();

    for title in ["clock", "monotonic", "urandom"] {
        assert!(!words(code, title).is_empty(), "{title}: the policy ends");
    }
    let told = words(code, "recursion");
    assert!(told.contains("RecursionError") || told.contains("call stack"), "{told}");
    let file = words(code, "file");
    assert!(file.contains("Error") || file.contains("unreachable"), "{file}");
    for title in ["random", "hash", "environment"] {
        let told = words(code, title);
        assert!(told.contains("saw "), "{title}: {told}");
        assert_eq!(words(code, title), told, "{title}: two sandboxes differ");
    }
    assert!(words(code, "environment").ends_with("saw 0"), "{}", words(code, "environment"));
    let endless = translated(code, "loop");
    assert!(matches!(endless, Err(Failure::OutOfFuel { verb: Verb::Translate, .. })), "{endless:?}");
    let memory = translated(code, "memory");
    let is_ended = match &memory {
        Err(Failure::OutOfMemory { verb: Verb::Translate, .. }) => true,
        Err(Failure::Trap { reason, .. }) => reason.contains("MemoryError"),
        _ => false,
    };
    assert!(is_ended, "{memory:?}");
}
