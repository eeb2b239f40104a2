//! Compares the final objects in a namespace with those of another run. Leaves out values that differ between runs.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::read::{controller, finalizers, hash, text, uid};
use super::{World, is_ready};
use crate::normalize;

const OWNERS: [&str; 4] = ["Agent", "ModelAPI", "MCPServer", "Gadget"];
const REVISION: &str = "deployment.kubernetes.io/revision";
const CHILDREN: [&str; 5] = ["Deployment", "Service", "ConfigMap", "Secret", "ServiceAccount"];

/// The children and statuses in a namespace, without values that differ between clusters.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct State(BTreeMap<String, Value>);

impl State {
    /// Reads the children, and the objects that own them, in the test's namespace.
    pub async fn of(w: &World) -> Self {
        let mut state = BTreeMap::new();
        for kind in CHILDREN {
            for child in w.list(kind).await {
                let name = text(&child["metadata"]["name"]).to_owned();
                if controller(&child).is_null() {
                    continue;
                }
                let template = hash(&child).to_owned();
                let mut kept = normalize::stripped(child);
                // Remove two annotations that differ between runs: one is a digest that depends on the owner's UID, and
                // the other counts rollouts.
                if let Some(annotations) = kept["metadata"]["annotations"].as_object_mut() {
                    annotations.retain(|name, _| !["kaos.tools/applied-digest", REVISION].contains(&name.as_str()));
                }
                kept["template"] = json!(template);
                state.insert(format!("{kind}/{name}"), kept);
            }
        }
        for kind in OWNERS {
            for object in w.list(kind).await {
                state.insert(format!("{kind}/{}", text(&object["metadata"]["name"])), told(&object));
            }
        }
        Self(state)
    }
}

/// Returns an object's status and finalizers, without times and generations.
fn told(object: &Value) -> Value {
    let ready = is_ready(object);
    let generation = object["metadata"]["generation"].clone();
    let mut status = object["status"].clone();
    let mut current = status["observedGeneration"] == generation;
    for condition in status["conditions"].as_array_mut().into_iter().flatten() {
        current &= condition["observedGeneration"] == generation;
        if let Some(condition) = condition.as_object_mut() {
            condition.remove("lastTransitionTime");
            condition.remove("observedGeneration");
        }
    }
    if let Some(conditions) = status["conditions"].as_array_mut() {
        conditions.sort_by_key(|condition| text(&condition["type"]).to_owned());
    }
    if let Some(fields) = status.as_object_mut() {
        for field in ["observedGeneration", "appliedGeneration", "deployment"] {
            fields.remove(field);
        }
    }
    let mut finalizers: Vec<&str> = finalizers(object);
    finalizers.sort_unstable();
    json!({"status": status, "ready": ready, "about the current generation": current, "finalizers": finalizers})
}

/// Returns the differences between the final state and the state of a run without faults.
pub fn differences(end: &State, wanted: &State) -> Vec<String> {
    let names: BTreeSet<&String> = end.0.keys().chain(wanted.0.keys()).collect();
    let pretty = |value: &Value| serde_json::to_string_pretty(value).unwrap_or_default();
    let differs = |name: &&&String| end.0.get(**name) != wanted.0.get(**name);
    let tell = |name: &String| match (end.0.get(name), wanted.0.get(name)) {
        (None, _) => format!("{name} is missing"),
        (_, None) => format!("{name} exists, but must not exist"),
        (Some(end), Some(wanted)) => {
            let (wanted, end) = (pretty(wanted), pretty(end));
            let diff = similar::TextDiff::from_lines(&wanted, &end);
            format!("{name} differs\n{}", diff.unified_diff().context_radius(3).header("without faults", "with"))
        }
    };
    names.iter().filter(differs).map(|name| tell(name)).collect()
}

/// Returns the children whose owner no longer exists.
pub async fn strays(w: &World) -> Vec<String> {
    let mut owners = BTreeSet::new();
    for kind in OWNERS {
        owners.extend(w.list(kind).await.iter().map(|object| uid(object).to_owned()));
    }
    let mut wrong = Vec::new();
    for kind in CHILDREN {
        for child in w.list(kind).await {
            let owner = controller(&child);
            if OWNERS.contains(&text(&owner["kind"])) && !owners.contains(text(&owner["uid"])) {
                wrong.push(format!("the owner of {kind}/{} does not exist", text(&child["metadata"]["name"])));
            }
        }
    }
    wrong
}
