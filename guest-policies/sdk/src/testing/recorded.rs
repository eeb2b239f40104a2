//! Compares the plans for a policy's samples with recorded files.

use crate::types::{Plan, Refusal, Sample};
use crate::{Policy, testing};
use serde_json::{Map, Value, json};
use std::fs;
use std::path::Path;

/// Returns the default of every setting in a schema. The host fills in the same defaults.
///
/// # Panics
///
/// Fails the test if the schema is not JSON.
#[allow(clippy::panic, reason = "a test with a broken schema has failed")]
pub fn defaults(schema: &str) -> Value {
    let schema = serde_json::from_str(schema).unwrap_or_else(|error| panic!("the schema of the settings: {error}"));
    of_schema(&schema, &schema).unwrap_or_else(|| json!({}))
}

/// Returns the default of a node: its own default, filled with the defaults of its properties.
fn of_schema(node: &Value, root: &Value) -> Option<Value> {
    let target = node.get("$ref").and_then(Value::as_str).and_then(|at| root.pointer(at.strip_prefix('#')?));
    let mut default = node.get("default").cloned().or_else(|| of_schema(target?, root));
    for (name, property) in node.get("properties").and_then(Value::as_object).into_iter().flatten() {
        if let Some(inner) = of_schema(property, root) {
            let outer = default.get_or_insert_with(|| json!({}));
            fill(outer, &json!({ name: inner }));
        }
    }
    default
}

/// Adds to `outer` all members of `inner` that it lacks.
pub(super) fn fill(outer: &mut Value, inner: &Value) {
    if let (Value::Object(outer), Value::Object(inner)) = (outer, inner) {
        for (name, value) in inner {
            match outer.get_mut(name) {
                Some(own) => fill(own, value),
                None => drop(outer.insert(name.clone(), value.clone())),
            }
        }
    }
}

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
        let recorded = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
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
