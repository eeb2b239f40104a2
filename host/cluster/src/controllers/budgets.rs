//! `PodDisruptionBudget`s: computes how many of the selected pods a client may evict now. A deletion of a pod ignores
//! this number.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    Moment, budget_objects, controller_of, deployment_objects, pods, replica_set_objects, served, stateful_set_objects,
};
use crate::{
    api,
    kinds::{count, share},
    state::State,
    storage::{Key, LabelSelector, controller, meta},
};

pub(super) fn sync(state: &mut State, key: &Key, moment: &Moment<'_>) {
    let Some(budget) = state.store.get(&budget_objects(), key).cloned() else { return };
    let Some(resource) = served(state, &budget_objects()) else { return };
    let spec = &budget["spec"];
    let selector = LabelSelector::of_object(&spec["selector"]);
    // An empty selector selects all pods of the namespace. A missing selector selects no pod.
    let selects = |pod: &Value| !spec["selector"].is_null() && (selector.is_empty() || selector.matches(pod));
    let found = state.store.list(&pods(), &key.namespace).map(|(_, pod)| pod).filter(|pod| selects(pod));
    let found: Vec<Arc<Value>> = found.cloned().collect();
    let healthy =
        found.iter().filter(|pod| super::pod_status::is_ready(pod) && meta(pod, "deletionTimestamp").is_empty());
    let healthy = i64::try_from(healthy.count()).unwrap_or_default();
    let (expected, desired) = match (&spec["minAvailable"], &spec["maxUnavailable"]) {
        (Value::Number(number), _) => {
            (i64::try_from(found.len()).unwrap_or_default(), number.as_i64().unwrap_or_default())
        }
        (least @ Value::String(_), _) => {
            let expected = expected(state, &found);
            (expected, share(least, expected, true))
        }
        (_, Value::Null) => (i64::try_from(found.len()).unwrap_or_default(), 1),
        (_, most) => {
            let expected = expected(state, &found);
            (expected, (expected - share(most, expected, true)).max(0))
        }
    };
    let allowed = if expected > 0 { (healthy - desired).max(0) } else { 0 };
    let now = moment.text();
    api::controller_update(state, &resource, "status", &budget, &now, |object| {
        let (status, reason) = if allowed > 0 { ("True", "SufficientPods") } else { ("False", "InsufficientPods") };
        let known = object["status"]["conditions"][0].clone();
        let since = if known["status"] == status { known["lastTransitionTime"].clone() } else { json!(now) };
        let generation = object["metadata"]["generation"].clone();
        object["status"] = json!({
            "observedGeneration": generation, "currentHealthy": healthy, "desiredHealthy": desired,
            "expectedPods": expected, "disruptionsAllowed": allowed,
            "conditions": [{"type": "DisruptionAllowed", "status": status, "reason": reason, "message": "",
                "lastTransitionTime": since, "observedGeneration": generation}],
        });
    });
}

/// Returns how many pods the controllers of these pods want in total.
fn expected(state: &State, found: &[Arc<Value>]) -> i64 {
    let mut owners: Vec<(String, i64)> = found.iter().filter_map(|pod| wanted(state, pod)).collect();
    owners.sort();
    owners.dedup_by(|one, other| one.0 == other.0);
    owners.into_iter().map(|(_, replicas)| replicas).sum()
}

/// Returns the UID of the controller that scales a pod, and the number of pods that this controller wants. `None`
/// without such a controller.
fn wanted(state: &State, pod: &Value) -> Option<(String, i64)> {
    let owner = controller(pod)?;
    let key = Key::new(meta(pod, "namespace"), owner["name"].as_str()?);
    let of = match owner["kind"].as_str()? {
        "StatefulSet" => stateful_set_objects(),
        _ => replica_set_objects(),
    };
    let set = state.store.get(&of, &key)?;
    let deployment = controller_of(set);
    let deployment =
        deployment.and_then(|name| state.store.get(&deployment_objects(), &Key::new(&key.namespace, &name)));
    let scaled = deployment.unwrap_or(set);
    Some((meta(scaled, "uid").to_owned(), count(&scaled["spec"]["replicas"])))
}
