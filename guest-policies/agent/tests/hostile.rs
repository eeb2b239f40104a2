//! Tests that the policy answers every spec with a plan or a refusal, and that each violation names a field.

#![allow(clippy::panic, clippy::unwrap_used)] // helpers of tests; a failure must end the test

#[path = "../../sdk/tests/support/anything.rs"]
mod anything;

use anything::{any_text, anything};
use kaos_agent::Agent;
use kaos_policy_sdk::types::{Outcome, Refusal};
use kaos_policy_sdk::{Policy, testing};
use proptest::prelude::*;
use serde_json::{Value, json};

fn full() -> Value {
    serde_json::from_str(include_str!("../samples/full.json")).unwrap()
}

fn beside() -> Vec<Value> {
    [
        include_str!("../samples/modelapi.json"),
        include_str!("../samples/mcpserver.json"),
        include_str!("../samples/peer.json"),
        include_str!("../samples/registry.json"),
    ]
    .map(|text| serde_json::from_str(text).unwrap())
    .into()
}

/// Calls all five functions of the policy. Returns the refusal, or `None` if the policy did not refuse the object.
fn ask(object: &Value) -> Option<Refusal> {
    let subject = testing::subject(object).beside::<Agent>(&beside()).build();
    let answer = testing::plan::<Agent>(&subject);
    let outcome = match &answer {
        Ok(_) => Outcome::Applied,
        Err(refused) => Outcome::Refused(refused.clone()),
    };
    let report = Agent::assess(&subject, &testing::observation(outcome).build());
    assert_eq!(report.ready, report.phase == "Ready");
    match answer {
        Ok(plan) => {
            for manifest in &plan.manifests {
                assert!(serde_json::from_str::<Value>(manifest).unwrap().is_object());
            }
            None
        }
        Err(Refusal::Invalid(violations)) => {
            assert!(!violations.is_empty());
            assert!(violations.iter().all(|it| !it.path.is_empty() && !it.message.is_empty()), "{violations:?}");
            Some(Refusal::Invalid(violations))
        }
        Err(other) => Some(other),
    }
}

fn paths(value: &Value, here: &[String], found: &mut Vec<Vec<String>>) {
    if !here.is_empty() {
        found.push(here.to_vec());
    }
    let mut below = |key: String, value: &Value| paths(value, &[here, &[key]].concat(), found);
    match value {
        Value::Object(members) => members.iter().for_each(|(key, value)| below(key.clone(), value)),
        Value::Array(items) => items.iter().enumerate().for_each(|(index, value)| below(index.to_string(), value)),
        _ => {}
    }
}

fn put(value: &mut Value, path: &[String], new: Value) {
    let place = path.iter().fold(value, |value, key| match value {
        Value::Array(items) => &mut items[key.parse::<usize>().unwrap()],
        other => &mut other[key.as_str()],
    });
    *place = new;
}

const WORDS: [&str; 4] = ["local", "remote", "pi", "worker"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_value_in_any_field_gets_an_answer(at in any::<prop::sample::Index>(), new in anything(&WORDS)) {
        let mut object = full();
        let mut all = Vec::new();
        paths(&object["spec"], &["spec".to_owned()], &mut all);
        put(&mut object, &all[at.index(all.len())], new);
        ask(&object);
    }

    #[test]
    fn any_spec_is_answered(spec in anything(&WORDS)) {
        let mut object = full();
        object["spec"] = spec;
        ask(&object);
    }

    #[test]
    fn any_name_is_answered(name in any_text(&[])) {
        let mut object = full();
        object["metadata"]["name"] = json!(name);
        ask(&object);
    }
}

#[test]
fn every_field_of_a_wrong_type_is_answered() {
    let mut all = Vec::new();
    paths(&full(), &[], &mut all);
    for path in all {
        for wrong in [json!(null), json!(7), json!("text"), json!([1]), json!({"a": 1}), json!(true)] {
            let mut object = full();
            put(&mut object, &path, wrong);
            ask(&object);
        }
    }
}

#[test]
fn very_long_texts_and_very_many_variables_are_answered() {
    let mut object = full();
    object["spec"]["config"]["instructions"] = json!("x".repeat(1_000_000));
    assert!(ask(&object).is_none());
    object["spec"]["model"] = json!("y".repeat(1_000_000));
    ask(&object);
    object = full();
    let variables: Vec<Value> = (0..10_000).map(|n| json!({"name": format!("V{n}"), "value": "v"})).collect();
    object["spec"]["container"]["env"] = json!(variables);
    assert!(ask(&object).is_none());
}

#[test]
fn user_text_never_becomes_part_of_a_script() {
    let mut object = full();
    let evil = "https://h/$(touch /x);`id`\"'.git";
    object["spec"]["harness"]["workspace"]["repoURL"] = json!(evil);
    object["spec"]["harness"]["workspace"]["branch"] = json!("--upload-pack=$(id)");
    let subject = testing::subject(&object).beside::<Agent>(&beside()).build();
    assert!(matches!(testing::plan::<Agent>(&subject), Err(Refusal::Invalid(_))), "spaces are refused");
    object["spec"]["harness"]["workspace"]["repoURL"] = json!(evil.replace(' ', ""));
    let subject = testing::subject(&object).beside::<Agent>(&beside()).build();
    let plan = testing::plan::<Agent>(&subject).unwrap();
    let deployment = testing::manifest(&plan, "Deployment");
    let init = &deployment.at(&["spec", "template", "spec", "initContainers"]).unwrap()[0];
    let script = init["command"][2].as_str().unwrap();
    assert!(!script.contains("touch") && !script.contains("upload-pack"));
    let url = testing::env_value(&plan.env, "workspace-clone", "REPO_URL").unwrap();
    assert!(url.contains("$$(touch"), "Kubernetes must not expand it: {url}");
}

#[test]
fn a_repository_url_with_a_token_is_refused() {
    let mut object = full();
    object["spec"]["harness"]["workspace"]["repoURL"] = json!("https://user:token@h/r.git");
    let Some(Refusal::Invalid(violations)) = ask(&object) else { panic!("must be refused") };
    assert_eq!(violations[0].path, "spec.harness.workspace.repoURL");
}
