//! Compares the plans for a policy's samples with recorded files.

use super::defaults::defaults;
use crate::types::{Plan, Refusal, Sample};
use crate::{Policy, testing};
use serde_json::{Map, Value, json};
use std::fs;
use std::path::Path;

/// Makes the plan of `P` for each of its samples, with the default settings. Compares each plan with
/// `<folder>/<sample>.json`. If the environment variable `UPDATE_GOLDEN` is set, writes the files instead.
///
/// # Panics
///
/// Fails the test if a plan differs from its file, or if a file cannot be read or written.
#[allow(clippy::panic, reason = "a difference fails the test")]
pub fn assert_recorded_plans<P: Policy>(folder: &Path) {
    let descriptor = P::describe();
    let settings = defaults(&descriptor.settings_schema);
    for Sample { name, object, beside } in descriptor.claims.into_iter().flat_map(|claim| claim.samples) {
        let beside: Vec<Value> = beside.iter().map(|object| parsed(object)).collect();
        let subject = testing::subject(&parsed(&object)).settings(&settings).beside::<P>(&beside).build();
        let plan = format!("{:#}\n", document(&testing::plan::<P>(&subject)));
        let file = folder.join(format!("{name}.json"));
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            let written = fs::create_dir_all(folder).and_then(|()| fs::write(&file, &plan));
            written.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            continue;
        }
        let recorded = fs::read_to_string(&file).unwrap_or_else(|error| {
            panic!("{}: {error}: run `UPDATE_GOLDEN=1 cargo test` to record the plans", file.display())
        });
        assert!(
            recorded == plan,
            "the plan for sample {name} differs from {file}: check the plan, then record it with UPDATE_GOLDEN=1 cargo test\n{plan}",
            file = file.display(),
        );
    }
}

#[allow(clippy::panic, reason = "a sample that is no JSON fails the test")]
fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("a sample: {error}"))
}

/// Converts a plan or a refusal to one JSON document.
fn document(plan: &Result<Plan, Refusal>) -> Value {
    match plan {
        Ok(plan) => {
            let manifests: Vec<Value> = plan.manifests.iter().map(|text| parsed(text)).collect();
            let gates = plan.gates.iter().map(|gate| format!("{}/{}: {}", gate.on.kind, gate.on.name, gate.reason));
            let origin =
                |it: &crate::types::EnvVar| (format!("{}/{}", it.container, it.name), Value::String(it.origin.clone()));
            json!({
                "manifests": manifests, "gates": gates.collect::<Vec<_>>(),
                "origins": plan.env.iter().map(origin).collect::<Map<_, _>>(),
            })
        }
        Err(Refusal::Invalid(violations)) => {
            json!({"invalid": violations.iter().map(|it| format!("{}: {}", it.path, it.message)).collect::<Vec<_>>()})
        }
        Err(Refusal::Waiting(blockers)) => {
            let names = blockers.iter().map(|it| format!("{}/{}: {}", it.on.kind, it.on.name, it.reason));
            json!({"waiting": names.collect::<Vec<_>>()})
        }
        Err(Refusal::Unsupported(message)) => json!({"unsupported": message}),
    }
}
