//! Checks that the template in Python passes its own tests, and answers like the template in Rust, byte for byte.

use kaos_policy::failure::{Failure, Verb};
use kaos_policy::gate::CodeForm;
use kaos_policy::limits::Limits;
use kaos_policy::native_code;
use kaos_tests::websites;
use serde_json::json;

use super::project::Project;

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
