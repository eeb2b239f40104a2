//! Checks the report of a script without the function `assess`. The report must equal the default report of a policy in
//! Rust, Go or Python. The libraries of these languages test the same cases.

use kaos_policy::contract::{Child, Observation, Outcome, Reference, Refusal};
use kaos_policy::digest::canonical;
use kaos_policy::limits::Limits;
use kaos_tests::websites;
use serde_json::{Value, json};

use super::same::load;

const CASES: &str = include_str!("../../../guest-policies/sdk/tests/data/default-reports.json");
const TEMPLATE: &str = include_str!("../../../guest-policies/template/javascript/policy.js");

#[test]
fn the_default_report_of_a_script_agrees_with_the_cases_of_all_languages() {
    let policy = load(&TEMPLATE.replace("export function assess", "function assess"));
    let cases: Vec<Value> = serde_json::from_str(CASES).unwrap();
    assert!(cases.len() > 10);
    for case in cases {
        let outcome = match case["outcome"].as_str() {
            Some("applied") => Outcome::Applied,
            Some("gated") => Outcome::Gated,
            Some("refused") => Outcome::Refused(Refusal::Unsupported("no".to_owned())),
            _ => Outcome::Failed("no".to_owned()),
        };
        let children = case["children"].as_array().unwrap().iter().map(|child| {
            let text = |field: &str| child[field].as_str().unwrap().to_owned();
            let (api_version, kind, name) = (text("apiVersion"), text("kind"), text("name"));
            let identity = Reference { api_version, kind, namespace: None, name };
            Child { identity, live: (!child["live"].is_null()).then(|| canonical(&child["live"])) }
        });
        let (gates, env, notes) = (Vec::new(), Vec::new(), Vec::new());
        let seen = Observation { outcome, children: children.collect(), gates, env, notes, extra: "{}".to_owned() };
        let mut sandbox = policy.code().open(&Limits::default()).unwrap();
        sandbox.begin(&websites::subject(&websites::blog(), &json!({}))).unwrap();
        let report = sandbox.assess(&seen).unwrap();
        let report = json!({"ready": report.ready, "phase": report.phase, "message": report.message});
        assert_eq!(report, case["report"], "{}", case["name"]);
    }
}
