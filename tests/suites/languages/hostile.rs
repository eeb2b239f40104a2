//! Policies in Go that panic, never end, or ask for files, random numbers or other things that a policy lacks. If such
//! a policy fails, its author gets a message, and the operator continues to work.

use kaos_policy::code::Code;
use kaos_policy::contract::{Found, Plan, Refusal};
use kaos_policy::failure::{Failure, Verb};
use kaos_policy::gate::CodeForm;
use kaos_policy::limits::Limits;
use kaos_tests::websites;
use serde_json::json;

use super::project::Project;

const POLICY: &str = include_str!("hostile.go");

pub(crate) fn translated(code: &dyn Code, title: &str) -> Result<Result<Plan, Refusal>, Failure> {
    let mut sandbox = code.open(&Limits::default()).unwrap();
    sandbox.begin(&websites::subject(&websites::blog(), &json!({"title": title}))).unwrap();
    assert_eq!(sandbox.needs(&Vec::<Found>::new()).unwrap(), []);
    sandbox.translate(Vec::new())
}

/// Returns the error message of a policy that trapped in `translate`.
pub(crate) fn words(code: &dyn Code, title: &str) -> String {
    match translated(code, title) {
        Err(Failure::Trap { verb: Verb::Translate, reason }) => reason,
        other => panic!("{title}: {other:?}"),
    }
}

#[test]
fn a_hostile_policy_in_go_fails_with_a_text_for_its_author() {
    let project = Project::new("go");
    project.write("policy.go", POLICY);
    let refused = project.run("sh", &["build.sh"]);
    let told = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && told.contains("wasi_snapshot_preview1.path_open"), "{told}");
    assert!(told.contains("a policy has no files") && told.contains("--stub-wasi"), "{told}");

    let script = std::fs::read_to_string(project.path("build.sh")).unwrap();
    project.write("build.sh", &script.replace("policy build", "policy build --stub-wasi"));
    let policy = websites::load(CodeForm::Component, project.build());
    let code = policy.code();
    for (title, parts) in [
        ("panic", ["panicked at website-policy/policy.go:36: ", "the kite is gone"]),
        ("index", ["website-policy/policy.go:38: ", "index out of range [7] with length 0"]),
        ("error", ["no refusal: ", "the kite is torn"]),
        ("nothing", ["neither a plan", "nor a refusal"]),
        ("exit", ["the policy ended its process: ", "it must return an answer"]),
        ("random", ["the policy asked for random numbers: ", "its answer must depend only on its input"]),
        ("deadlock", ["fatal error: ", "all goroutines are asleep - deadlock!"]),
        ("chatter", ["panicked at website-policy/policy.go:65: ", "after the chatter"]),
        ("recursion", ["call stack ", "exhausted"]),
    ] {
        let told = words(code, title);
        assert!(parts.iter().all(|part| told.contains(part)), "{title}: {told}");
    }
    let loops = translated(code, "loop");
    assert!(matches!(loops, Err(Failure::OutOfFuel { verb: Verb::Translate, .. })), "{loops:?}");
    let memory = translated(code, "memory");
    assert!(matches!(memory, Err(Failure::OutOfMemory { verb: Verb::Translate, .. })), "{memory:?}");

    for (title, wanted) in [
        ("clock", vec![r#"now = "1970-01-01T00:00:00Z""#, "slept = true"]),
        ("goroutines", vec!["sum = 4950"]),
        ("averted", vec!["dirty = 0"]),
        (
            "outside",
            vec![r#"file = "open /etc/passwd: Not implemented on wasip1""#, "environment = 0", r#"input = "0 EOF""#],
        ),
    ] {
        let plan = translated(code, title).unwrap().unwrap();
        let notes: Vec<&str> = plan.notes.iter().map(|note| note.message.as_str()).collect();
        assert_eq!(notes, wanted, "{title}");
        assert_eq!(translated(code, title).unwrap().unwrap(), plan, "{title}: two sandboxes differ");
    }
}
