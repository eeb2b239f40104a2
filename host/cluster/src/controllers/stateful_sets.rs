//! `StatefulSet`s: creates, replaces and deletes pods with ordinals, one after another.
//!
//! The pods get a volume for each item of `volumeClaimTemplates`. The controller creates no volume claims: the
//! pods of this cluster start without volume claims.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use serde_json::{Value, json};

use super::{
    Moment, adopt, controlled, pod_status, pods as pod_objects, served, stateful_set_objects, template, workers,
};
use crate::{
    api,
    kinds::count,
    state::State,
    storage::{Key, meta},
};

/// The label with the revision of a pod.
const REVISION: &str = "controller-revision-hash";
/// The delay after a failure to create pods.
const RETRY: Duration = Duration::from_secs(5);

/// The pods of a set, by their ordinals.
type Ordinals = BTreeMap<i64, Arc<Value>>;

pub(super) fn sync(state: &mut State, key: &Key, moment: &Moment<'_>) -> Option<Duration> {
    let set = state.store.get(&stateful_set_objects(), key).cloned()?;
    let goes = !meta(&set, "deletionTimestamp").is_empty();
    if !goes {
        adopt::orphans(state, &pod_objects(), &set, "StatefulSet", moment);
    }
    let revision = format!("{}-{}", key.name, template::hash(&set["spec"]["template"]));
    let missing = if goes { None } else { workers::missing_account(state, &set) };
    if !goes && missing.is_none() {
        step(state, &set, &revision, moment);
    }
    let again = report(state, key, &revision, moment);
    again.into_iter().chain(missing.map(|_| RETRY)).min()
}

fn ordinals(state: &State, set: &Value) -> Ordinals {
    let prefix = format!("{}-", meta(set, "name"));
    let pods = controlled(state, &pod_objects(), meta(set, "namespace"), meta(set, "uid"));
    pods.into_iter().filter_map(|pod| Some((meta(&pod, "name").strip_prefix(&prefix)?.parse().ok()?, pod))).collect()
}

/// Creates, deletes and replaces pods, as far as the pod management policy and the update strategy allow it now.
fn step(state: &mut State, set: &Value, revision: &str, moment: &Moment<'_>) {
    let spec = &set["spec"];
    let is_ordered = spec["podManagementPolicy"] != "Parallel";
    let min_ready = u64::try_from(count(&spec["minReadySeconds"])).unwrap_or_default();
    let serves = |pod: &Arc<Value>| {
        meta(pod, "deletionTimestamp").is_empty() && pod_status::availability(pod, min_ready, moment.now).is_ok()
    };
    let first = count(&spec["ordinals"]["start"]);
    let wanted = workers::bounded(state, set, count(&spec["replicas"]), moment);
    let last = first.saturating_add(wanted);
    let there = ordinals(state, set);
    for ordinal in first..last {
        match there.get(&ordinal) {
            Some(pod) if serves(pod) => {}
            Some(_) if is_ordered => return,
            Some(_) => {}
            None => {
                make(state, set, ordinal, revision, moment);
                if is_ordered {
                    return;
                }
            }
        }
    }
    for (_, pod) in there.iter().rev().filter(|(ordinal, _)| !(first..last).contains(ordinal)) {
        workers::delete(state, pod, moment);
        if is_ordered {
            return;
        }
    }
    if spec["updateStrategy"]["type"] != "RollingUpdate" {
        return;
    }
    let partition = count(&spec["updateStrategy"]["rollingUpdate"]["partition"]);
    for (_, pod) in there.range(first.saturating_add(partition)..last.max(first.saturating_add(partition))).rev() {
        if pod["metadata"]["labels"][REVISION] != *revision {
            workers::delete(state, pod, moment);
            return;
        }
        if !serves(pod) {
            return;
        }
    }
}

fn make(state: &mut State, set: &Value, ordinal: i64, revision: &str, moment: &Moment<'_>) {
    let name = format!("{}-{ordinal}", meta(set, "name"));
    workers::create(state, set, Some(name.clone()), moment, |pod| {
        let labels = &mut pod["metadata"]["labels"];
        labels["statefulset.kubernetes.io/pod-name"] = json!(name);
        labels["apps.kubernetes.io/pod-index"] = json!(ordinal.to_string());
        labels[REVISION] = json!(revision);
        pod["spec"]["hostname"] = json!(name);
        if set["spec"]["serviceName"].as_str().is_some_and(|name| !name.is_empty()) {
            pod["spec"]["subdomain"] = set["spec"]["serviceName"].clone();
        }
        add_volumes(pod, &set["spec"]["volumeClaimTemplates"], &name);
    });
}

/// Adds a volume for each claim template. This volume replaces a volume of the same name in the pod template.
fn add_volumes(pod: &mut Value, templates: &Value, name: &str) {
    for claim in templates.as_array().into_iter().flatten() {
        let volume = &claim["metadata"]["name"];
        let claim = format!("{}-{name}", volume.as_str().unwrap_or_default());
        let added = json!({"name": volume, "persistentVolumeClaim": {"claimName": claim}});
        match pod["spec"]["volumes"].as_array_mut() {
            Some(volumes) => {
                volumes.retain(|other| other["name"] != *volume);
                volumes.push(added);
            }
            None => pod["spec"]["volumes"] = json!([added]),
        }
    }
}

/// Writes the status. Returns the time until the next pod becomes available; `None` if no further pod becomes available
/// by waiting.
fn report(state: &mut State, key: &Key, revision: &str, moment: &Moment<'_>) -> Option<Duration> {
    let set = state.store.get(&stateful_set_objects(), key).cloned()?;
    let resource = served(state, &stateful_set_objects())?;
    let min_ready = u64::try_from(count(&set["spec"]["minReadySeconds"])).unwrap_or_default();
    let pods: Vec<Arc<Value>> = ordinals(state, &set).into_values().collect();
    let available: Vec<_> = pods.iter().map(|pod| pod_status::availability(pod, min_ready, moment.now)).collect();
    let stays = |pod: &&Arc<Value>| meta(pod, "deletionTimestamp").is_empty();
    let of = |revision: &str| {
        pods.iter().filter(stays).filter(|pod| pod["metadata"]["labels"][REVISION] == *revision).count()
    };
    let ready = pods.iter().filter(|pod| pod_status::is_ready(pod)).count();
    let updated = of(revision);
    let wanted = usize::try_from(count(&set["spec"]["replicas"])).unwrap_or_default();
    let known = set["status"]["currentRevision"].as_str().unwrap_or(revision);
    let is_complete = [pods.len(), updated, ready].iter().all(|number| *number == wanted);
    let current = if is_complete { revision } else { known };
    let mut status = json!({
        "observedGeneration": set["metadata"]["generation"], "replicas": pods.len(), "collisionCount": 0,
        "availableReplicas": available.iter().filter(|pod| pod.is_ok()).count(),
        "currentRevision": current, "updateRevision": revision,
    });
    for (field, number) in [("readyReplicas", ready), ("currentReplicas", of(current)), ("updatedReplicas", updated)] {
        if number > 0 {
            status[field] = json!(number);
        }
    }
    api::controller_update(state, &resource, "status", &set, &moment.text(), |object| object["status"] = status);
    available.into_iter().filter_map(|pod| pod.err().flatten()).min()
}
