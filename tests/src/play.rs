//! Runs a recorded case on a [`Stage`].

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use kaos_policy::render::Renderer;
use serde_json::{Map, Value, json};

use crate::case::Case;
use crate::normalize;
use crate::stage::{Key, MappedVariable, Stage, key};

/// The label and the annotation that the host adds to every manifest.
const STAMPS: [&str; 2] = ["app.kubernetes.io/managed-by", "kaos.tools/applied-digest"];

/// The result of a case: children and statuses in the format of the recording, and the fuel of the last pass over the
/// first object of the field `primary`.
pub struct Ended {
    /// The children and statuses, in the format of `expected.json`.
    pub outcome: Value,
    /// The conditions of the first object of the field `primary`.
    pub conditions: BTreeMap<String, String>,
    /// The objects of the field `primary`, with the statuses that the host would write.
    pub objects: Vec<Value>,
    /// The fuel of the last pass over the first object of the field `primary`. Zero for native policies, because they
    /// use no fuel.
    pub fuel: u64,
    /// The variables of all plans.
    pub variables: BTreeSet<MappedVariable>,
}

/// Applies the objects of a case in their order, and runs passes until nothing changes.
pub fn play(case: &Case, wanted: &Value, renderers: BTreeMap<String, Renderer>) -> Result<Ended> {
    let primaries: Vec<Key> = case.about.primary.iter().map(|name| named(name)).collect();
    let mut stage = Stage::new(renderers);
    recorded_deployments(&mut stage, wanted);
    for object in &case.input {
        stage.apply(object);
    }
    stage.settle()?;
    for pods in &case.readiness.before {
        stage.make_ready(&pods.deployment, pods.ready);
    }
    stage.settle()?;
    let children: Vec<Key> = primaries.iter().flat_map(|primary| stage.children_of(primary)).map(|c| key(&c)).collect();
    for object in &case.update {
        // Skip those objects of the update that edit a child: the operator would treat such an edit as drift, and would
        // restore the child.
        if !children.contains(&key(object)) {
            stage.apply(object);
            stage.settle()?;
        }
    }
    for pods in &case.readiness.after {
        stage.make_ready(&pods.deployment, pods.ready);
    }
    recorded_deployments(&mut stage, wanted);
    stage.settle()?;

    let mut looked_at: Vec<Key> = primaries.clone();
    looked_at.extend(case.about.also_record.iter().filter_map(|name| owner_of_recorded(name, wanted)));
    let mut children: Vec<Value> =
        looked_at.iter().flat_map(|owner| stage.children_of(owner)).map(recorded_form).collect();
    children.sort_by_key(key);
    children.dedup();
    let mut outcome = Map::new();
    outcome.insert("children".into(), json!(children));
    outcome.insert("status".into(), normalize::status(&stage.status_of(&primaries[0])));
    if primaries.len() > 1 {
        let statuses = primaries.iter().map(|p| (format!("{}/{}", p.0, p.1), normalize::status(&stage.status_of(p))));
        outcome.insert("statuses".into(), Value::Object(statuses.collect()));
    }
    let conditions = conditions(&stage.status_of(&primaries[0]));
    let fuel = stage.fuel.get(&primaries[0]).copied().unwrap_or_default();
    let objects = primaries.iter().filter_map(|primary| stage.as_written(primary)).collect();
    Ok(Ended { outcome: Value::Object(outcome), conditions, objects, fuel, variables: stage.variables })
}

/// Returns the status of each condition, by the type of the condition.
fn conditions(status: &Value) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let all = status["conditions"].as_array().into_iter().flatten();
    all.map(|condition| (text(&condition["type"]), text(&condition["status"]))).collect()
}

/// Converts a child to the format of the recordings. The recordings contain none of the API server's defaults, except
/// for the number of replicas.
pub fn recorded_form(child: Value) -> Value {
    let mut child = normalize::stripped(child);
    if child["kind"] == "Deployment" && child["spec"].get("replicas").is_none() {
        child["spec"]["replicas"] = json!(1);
    }
    child
}

/// Removes from `ours` the labels, annotations and status fields that this operator may write although the recording
/// lacks them.
pub fn without_additions(ours: &mut Value, wanted: &Value) {
    let wanted_children = wanted["children"].as_array().cloned().unwrap_or_default();
    for child in ours["children"].as_array_mut().into_iter().flatten() {
        let twin = wanted_children.iter().find(|wanted| key(wanted) == key(child));
        for field in ["labels", "annotations"] {
            let known = twin.map(|twin| twin["metadata"][field].as_object().cloned().unwrap_or_default());
            if let Some(entries) = child["metadata"][field].as_object_mut() {
                entries.retain(|key, _| match &known {
                    Some(known) => known.contains_key(key),
                    None => !STAMPS.contains(&key.as_str()),
                });
                if entries.is_empty() {
                    child["metadata"].as_object_mut().map(|metadata| metadata.remove(field));
                }
            }
        }
    }
    trim_status(&mut ours["status"], &wanted["status"]);
    for (name, status) in ours.get_mut("statuses").and_then(Value::as_object_mut).into_iter().flatten() {
        trim_status(status, &wanted["statuses"][name]);
    }
}

fn trim_status(ours: &mut Value, wanted: &Value) {
    let (Some(ours), Some(wanted)) = (ours.as_object_mut(), wanted.as_object()) else { return };
    ours.retain(|key, _| wanted.contains_key(key));
    let known = wanted.get("linkedResources").and_then(Value::as_object);
    if let (Some(links), Some(known)) = (ours.get_mut("linkedResources").and_then(Value::as_object_mut), known) {
        links.retain(|key, _| known.contains_key(key));
    }
}

/// Sets the status of each Deployment to `status.deployment` of the recording.
fn recorded_deployments(stage: &mut Stage, wanted: &Value) {
    let statuses = wanted["statuses"].as_object().cloned().unwrap_or_default();
    for child in wanted["children"].as_array().into_iter().flatten().filter(|child| child["kind"] == "Deployment") {
        let owner = &child["metadata"]["ownerReferences"][0];
        let name = format!("{}/{}", owner["kind"].as_str().unwrap_or(""), owner["name"].as_str().unwrap_or(""));
        let status = statuses.get(&name).unwrap_or(&wanted["status"]);
        if let (Some(deployment), Some(name)) = (status.get("deployment"), child["metadata"]["name"].as_str()) {
            stage.deployment_status(name, deployment.clone());
        }
    }
}

/// Returns the owner of a recorded child such as `Deployment/agent-b`, or `None` if the recording lacks the child or
/// its owner.
pub fn owner_of_recorded(name: &str, wanted: &Value) -> Option<Key> {
    let looked_at = named(name);
    let child = wanted["children"].as_array()?.iter().find(|child| key(child) == looked_at)?;
    let owner = &child["metadata"]["ownerReferences"][0];
    Some((owner["kind"].as_str()?.to_owned(), owner["name"].as_str()?.to_owned()))
}

fn named(name: &str) -> Key {
    let (kind, name) = name.split_once('/').unwrap_or((name, ""));
    (kind.to_owned(), name.to_owned())
}
