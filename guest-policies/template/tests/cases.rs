//! Compares the answers of the policy with recorded cases. `kaos-operator policy replay CASE --as-test .` writes the
//! files `tests/cases/NAME.json`. A file without `expected` comes from a pass in which the policy failed: correct the
//! policy, then add the expected answer with `UPDATE_CASES=1 cargo test`.

use std::{fs, path::Path};

use kaos_policy_sdk::testing;
use kaos_policy_sdk::types::{Answer, Plan, Refusal};
use serde_json::{Value, json};
use website_policy::Website;

#[test]
fn recorded_cases_have_the_recorded_answers() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut files: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    for path in files {
        let mut case: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let answer = document(&answer(&case));
        if std::env::var_os("UPDATE_CASES").is_some() {
            case["expected"] = answer;
            fs::write(&path, format!("{case:#}\n")).unwrap();
            continue;
        }
        let expected = case.get("expected").unwrap_or_else(|| panic!("{}: has no expected answer", path.display()));
        assert!(*expected == answer, "{}: expected {expected:#}\nbut got {answer:#}", path.display());
    }
}

/// Returns the answer of the policy for the recorded input.
fn answer(case: &Value) -> Result<Plan, Refusal> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut subject = testing::subject(&case["object"]).settings(&case["settings"]).domain(&text(&case["domain"]));
    for of in list(&case["served"]) {
        subject = subject.serves(&text(&of["apiVersion"]), &text(&of["kind"]));
    }
    for found in list(&case["found"]) {
        let (id, answer) = (text(&found["id"]), &found["answer"]);
        subject = match answer {
            Value::String(_) => subject.answer(&id, Answer::Unserved),
            _ if answer["forbidden"].is_string() => subject.answer(&id, Answer::Forbidden(text(&answer["forbidden"]))),
            _ if answer["secret"].is_object() && answer["secret"]["present"] == true => {
                let keys: Vec<String> = list(&answer["secret"]["keys"]).iter().map(text).collect();
                subject.secret(&id, &keys.iter().map(String::as_str).collect::<Vec<_>>())
            }
            _ => subject.found(&id, &list(&answer["objects"])),
        };
    }
    let subject = if case["applied"] == true { subject.applied() } else { subject };
    testing::plan::<Website>(&subject.build())
}

/// Returns the part of an answer that the case compares.
fn document(answer: &Result<Plan, Refusal>) -> Value {
    match answer {
        Ok(plan) => {
            let manifests: Vec<Value> = plan.manifests.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
            let gates: Vec<String> =
                plan.gates.iter().map(|gate| format!("{}/{}: {}", gate.on.kind, gate.on.name, gate.reason)).collect();
            json!({"manifests": manifests, "gates": gates})
        }
        Err(Refusal::Invalid(all)) => {
            json!({"invalid": all.iter().map(|it| format!("{}: {}", it.path, it.message)).collect::<Vec<_>>()})
        }
        Err(Refusal::Waiting(all)) => {
            let told = all.iter().map(|it| format!("{}/{}: {}", it.on.kind, it.on.name, it.reason));
            json!({"waiting": told.collect::<Vec<_>>()})
        }
        Err(Refusal::Unsupported(message)) => json!({"unsupported": message}),
    }
}
