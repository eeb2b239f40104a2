//! Pods: schedules and starts them, gives them the fate that a test set, and stops them after deletion.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    Moment, PodFate, controller_of, ends,
    pod_status::{address, is_ready, run, set_condition},
    pods, replica_set_objects, served,
};
use crate::{
    api, clock,
    state::State,
    storage::{Key, controller, meta},
};

const NODE: &str = "node-0";

pub(super) fn sync(state: &mut State, key: &Key, moment: &Moment<'_>) -> Option<Duration> {
    let pod = state.store.get(&pods(), key).cloned()?;
    if !meta(&pod, "deletionTimestamp").is_empty() {
        stop(state, key, &pod);
        return None;
    }
    if ends::is_over(&pod) {
        return None;
    }
    let resource = served(state, &pods())?;
    let fate = moment.fates.of(&key.namespace, &workload_of(state, &pod).unwrap_or_default(), &pod);
    let now = moment.text();
    if fate == PodFate::Unschedulable && pod["spec"]["nodeName"].is_null() {
        api::controller_update(state, &resource, "status", &pod, &now, |pod| {
            set_condition(pod, "PodScheduled", false, Some(("Unschedulable", "0/1 nodes are available")), &now);
        });
        return None;
    }
    let mut pod = pod;
    if pod["spec"]["nodeName"].is_null() {
        pod = bind(state, key, &pod, &now);
    }
    let started = started(&pod).unwrap_or(moment.now);
    if ends::ends(&pod) {
        return ends::sync(state, &resource, &pod, fate, started, moment);
    }
    let (ready, again) = match fate {
        PodFate::ReadyAfter(after) => {
            let since = Duration::try_from(moment.now.duration_since(started)).unwrap_or_default();
            let is_ready = is_ready(&pod) || since >= after;
            (is_ready, after.checked_sub(since).filter(|_| !is_ready))
        }
        _ => (false, None),
    };
    let address = pod["status"]["podIP"].as_str().map_or_else(|| address(&pod), str::to_owned);
    api::controller_update(state, &resource, "status", &pod, &now, |pod| run(pod, fate, ready, &address, &now));
    again
}

/// Assigns the pod to the node. A binding does not raise the generation and has no field manager.
fn bind(state: &mut State, key: &Key, pod: &Value, now: &str) -> Arc<Value> {
    let mut pod = pod.clone();
    pod["spec"]["nodeName"] = json!(NODE);
    set_condition(&mut pod, "PodScheduled", true, None, now);
    state.store.put(&pods(), key, pod)
}

/// Stops a deleted pod at once. A pod with finalizers remains until its finalizers are removed.
fn stop(state: &mut State, key: &Key, pod: &Value) {
    if pod["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty) {
        state.store.remove(&pods(), key);
    }
}

fn started(pod: &Value) -> Option<Timestamp> {
    pod["status"]["startTime"].as_str().and_then(clock::parse)
}

/// Returns the name of the Deployment, `StatefulSet` or Job of a pod, or `None` for a pod without such an owner.
fn workload_of(state: &State, pod: &Value) -> Option<String> {
    if controller(pod).is_some_and(|owner| owner["kind"] != "ReplicaSet") {
        return controller_of(pod);
    }
    let set = state.store.get(&replica_set_objects(), &Key::new(meta(pod, "namespace"), &controller_of(pod)?))?;
    controller_of(set)
}
