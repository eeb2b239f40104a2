//! Deployments: creates one `ReplicaSet` for each template, moves the pods from old sets to the new set, and reports
//! the progress in the status.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};

use super::{
    Moment, adopt, controlled, deployment_objects,
    events::{self, EventText},
    replica_set_objects,
    rollout::{self, Bounds},
    served, template,
};
use crate::{
    api::{self, Deletion},
    clock,
    kinds::count,
    state::State,
    storage::{Key, meta},
};

const REVISION: &str = "deployment.kubernetes.io/revision";

pub(super) fn sync(state: &mut State, key: &Key, moment: &Moment<'_>) -> Option<Duration> {
    let deployment = state.store.get(&deployment_objects(), key).cloned()?;
    let uid = meta(&deployment, "uid").to_owned();
    if meta(&deployment, "deletionTimestamp").is_empty() {
        adopt::orphans(state, &replica_set_objects(), &deployment, "Deployment", moment);
    }
    let sets = controlled(state, &replica_set_objects(), &key.namespace, &uid);
    let spec = &deployment["spec"];
    let (mut new, old): (Vec<_>, Vec<_>) =
        sets.into_iter().partition(|set| template::same(&set["spec"]["template"], &spec["template"]));
    let new = if new.is_empty() { None } else { Some(new.remove(0)) };
    if meta(&deployment, "deletionTimestamp").is_empty() {
        let bounds = Bounds::of(spec);
        let recreate = spec["strategy"]["type"] == "Recreate";
        let paused = spec["paused"] == true;
        let (target, sizes) = rollout::step(&bounds, recreate, new.as_ref(), &old);
        if new.is_none() && !paused {
            // The creation of the new set triggers another run, which writes the status.
            let set = create_set(state, &deployment, &old, target, moment)?;
            announce(state, &deployment, &set, moment);
            return None;
        } else if let Some(set) = &new {
            adopt_revision(state, set, &old, moment);
            let target = if paused { count(&set["spec"]["replicas"]) } else { target };
            resize(state, &deployment, set, target, moment);
        }
        for (set, size) in old.iter().zip(sizes) {
            let size = if paused { count(&set["spec"]["replicas"]) } else { size };
            resize(state, &deployment, set, size, moment);
        }
        clean_up(state, &deployment, &old, moment);
    }
    report(state, key, new.as_deref(), moment)
}

/// Creates a `ReplicaSet` for the template of a Deployment.
fn create_set(
    state: &mut State,
    deployment: &Value,
    old: &[Arc<Value>],
    replicas: i64,
    moment: &Moment<'_>,
) -> Option<Arc<Value>> {
    let resource = served(state, &replica_set_objects())?;
    let hash = template::hash(&deployment["spec"]["template"]);
    let (namespace, name) = (meta(deployment, "namespace"), format!("{}-{hash}", meta(deployment, "name")));
    let key = Key::new(namespace, &name);
    if state.store.get(&replica_set_objects(), &key).is_some() {
        return None;
    }
    let mut template = deployment["spec"]["template"].clone();
    template["metadata"]["labels"][template::HASH] = json!(hash);
    let mut selector = deployment["spec"]["selector"].clone();
    selector["matchLabels"][template::HASH] = json!(hash);
    let mut annotations = deployment["metadata"]["annotations"].clone();
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
    }
    let bounds = Bounds::of(&deployment["spec"]);
    annotations[REVISION] = json!(next_revision(old).to_string());
    annotations["deployment.kubernetes.io/desired-replicas"] = json!(bounds.replicas.to_string());
    annotations["deployment.kubernetes.io/max-replicas"] = json!((bounds.replicas + bounds.max_surge).to_string());
    let mut set = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {"namespace": namespace, "labels": template["metadata"]["labels"], "annotations": annotations,
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": meta(deployment, "name"),
                "uid": meta(deployment, "uid"), "controller": true, "blockOwnerDeletion": true}]},
        "spec": {"replicas": replicas, "selector": selector, "template": template}});
    if count(&deployment["spec"]["minReadySeconds"]) > 0 {
        set["spec"]["minReadySeconds"] = deployment["spec"]["minReadySeconds"].clone();
    }
    api::stamp(state, &resource, &mut set, &name, &moment.text());
    let set = state.store.put(&replica_set_objects(), &key, set);
    tell(state, deployment, &name, 0, replicas, moment);
    Some(set)
}

/// Reports a new `ReplicaSet` in the status.
fn announce(state: &mut State, deployment: &Arc<Value>, set: &Value, moment: &Moment<'_>) {
    let Some(resource) = served(state, &deployment_objects()) else { return };
    let (now, text) = (moment.text(), format!("Created new replica set \"{}\"", meta(set, "name")));
    api::controller_update(state, &resource, "status", deployment, &now, |object| {
        let mut conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        set_condition(&mut conditions, "Progressing", true, ("NewReplicaSetCreated", &text), &now);
        object["status"]["conditions"] = json!(conditions);
    });
}

fn revision(set: &Value) -> i64 {
    set["metadata"]["annotations"][REVISION].as_str().and_then(|text| text.parse().ok()).unwrap_or_default()
}

fn next_revision(old: &[Arc<Value>]) -> i64 {
    old.iter().map(|set| revision(set)).max().unwrap_or_default() + 1
}

/// Gives a `ReplicaSet` the newest revision number if the Deployment returned to the template of this `ReplicaSet`.
fn adopt_revision(state: &mut State, set: &Arc<Value>, old: &[Arc<Value>], moment: &Moment<'_>) {
    let next = next_revision(old);
    if revision(set) >= next {
        return;
    }
    if let Some(resource) = served(state, &replica_set_objects()) {
        api::controller_update(state, &resource, "", set, &moment.text(), |set| {
            set["metadata"]["annotations"][REVISION] = json!(next.to_string());
        });
    }
}

fn resize(state: &mut State, deployment: &Value, set: &Value, replicas: i64, moment: &Moment<'_>) {
    let key = Key::new(meta(set, "namespace"), meta(set, "name"));
    let Some(resource) = served(state, &replica_set_objects()) else { return };
    let Some(current) = state.store.get(&replica_set_objects(), &key).cloned() else { return };
    let before = count(&current["spec"]["replicas"]);
    let bounds = Bounds::of(&deployment["spec"]);
    api::controller_update(state, &resource, "", &current, &moment.text(), |set| {
        let annotations = &mut set["metadata"]["annotations"];
        annotations["deployment.kubernetes.io/desired-replicas"] = json!(bounds.replicas.to_string());
        annotations["deployment.kubernetes.io/max-replicas"] = json!((bounds.replicas + bounds.max_surge).to_string());
        set["spec"]["replicas"] = json!(replicas);
    });
    if before != replicas {
        tell(state, deployment, &key.name, before, replicas, moment);
    }
}

/// Deletes old `ReplicaSet`s beyond the history limit.
fn clean_up(state: &mut State, deployment: &Value, old: &[Arc<Value>], moment: &Moment<'_>) {
    let limit = usize::try_from(deployment["spec"]["revisionHistoryLimit"].as_i64().unwrap_or(10)).unwrap_or_default();
    let idle = |set: &&Arc<Value>| count(&set["spec"]["replicas"]) == 0 && count(&set["status"]["replicas"]) == 0;
    let mut idle: Vec<&Arc<Value>> = old.iter().filter(idle).collect();
    idle.sort_by_key(|set| std::cmp::Reverse(revision(set)));
    let Some(resource) = served(state, &replica_set_objects()) else { return };
    for set in idle.into_iter().skip(limit) {
        let key = Key::new(meta(set, "namespace"), meta(set, "name"));
        let _left = api::delete(state, &resource, &key, &Deletion::default(), &moment.text());
    }
}

/// Writes the status. Returns the time until the controller must check the progress deadline; `None` if no check is
/// due.
fn report(state: &mut State, key: &Key, new: Option<&Value>, moment: &Moment<'_>) -> Option<Duration> {
    let deployment = state.store.get(&deployment_objects(), key).cloned()?;
    let resource = served(state, &deployment_objects())?;
    let now = moment.text();
    let sets = controlled(state, &replica_set_objects(), &key.namespace, meta(&deployment, "uid"));
    let sum = |field: &str| sets.iter().map(|set| count(&set["status"][field])).sum::<i64>();
    let newest = new.and_then(|new| sets.iter().find(|set| meta(set, "name") == meta(new, "name")).cloned());
    let of_new = |field: &str| newest.as_ref().map_or(0, |set| count(&set["status"][field]));
    let bounds = Bounds::of(&deployment["spec"]);
    let (total, available, updated) = (sum("replicas"), sum("availableReplicas"), of_new("replicas"));
    let mut status = json!({"observedGeneration": deployment["metadata"]["generation"],
        "terminatingReplicas": sum("terminatingReplicas")});
    let wanted: i64 = sets.iter().map(|set| count(&set["spec"]["replicas"])).sum();
    let unavailable = (wanted - available).max(0);
    for (field, number) in [
        ("replicas", total),
        ("updatedReplicas", updated),
        ("readyReplicas", sum("readyReplicas")),
        ("availableReplicas", available),
        ("unavailableReplicas", unavailable),
    ] {
        if number > 0 {
            status[field] = json!(number);
        }
    }
    let mut conditions = deployment["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let serving = available >= bounds.replicas - bounds.max_unavailable;
    set_condition(&mut conditions, "Available", serving, available_texts(serving), &now);
    let complete = updated == bounds.replicas && total == bounds.replicas && available >= bounds.replicas;
    let mut again = None;
    if let Some(set) = &newest {
        let name = meta(set, "name");
        let before = &deployment["status"];
        let moved = count(&before["updatedReplicas"]) != updated
            || count(&before["availableReplicas"]) < available
            || count(&before["readyReplicas"]) < sum("readyReplicas")
            || count(&before["replicas"]) - count(&before["updatedReplicas"]) > total - updated;
        let deadline = Duration::from_secs(
            u64::try_from(deployment["spec"]["progressDeadlineSeconds"].as_i64().unwrap_or(600)).unwrap_or(600),
        );
        let since = progress_age(&conditions, moment);
        if complete {
            let text = format!("ReplicaSet \"{name}\" has successfully progressed.");
            set_condition(&mut conditions, "Progressing", true, ("NewReplicaSetAvailable", &text), &now);
        } else if moved {
            let text = format!("ReplicaSet \"{name}\" is progressing.");
            touch_condition(&mut conditions, "Progressing", ("ReplicaSetUpdated", &text), &now);
            again = Some(deadline);
        } else if since.is_some_and(|since| since >= deadline) && deployment["spec"]["paused"] != true {
            let text = format!("ReplicaSet \"{name}\" has timed out progressing.");
            set_condition(&mut conditions, "Progressing", false, ("ProgressDeadlineExceeded", &text), &now);
        } else {
            again = since.and_then(|since| deadline.checked_sub(since));
        }
    }
    conditions.retain(|condition| condition["type"] != "ReplicaFailure");
    conditions.extend(sets.iter().find_map(|set| failure_of(set)));
    status["conditions"] = json!(conditions);
    let revision = newest.as_ref().map(|set| set["metadata"]["annotations"][REVISION].clone());
    api::controller_update(state, &resource, "status", &deployment, &now, |object| {
        object["status"] = status;
        if let Some(revision) = revision {
            object["metadata"]["annotations"][REVISION] = revision;
        }
    });
    again
}

/// Returns the condition that reports why a `ReplicaSet` creates no pods, or `None` if it can create pods.
fn failure_of(set: &Value) -> Option<Value> {
    let failure =
        set["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == "ReplicaFailure")?;
    let mut condition = failure.clone();
    condition["lastUpdateTime"] = failure["lastTransitionTime"].clone();
    Some(condition)
}

fn available_texts(serving: bool) -> (&'static str, &'static str) {
    if serving {
        ("MinimumReplicasAvailable", "Deployment has minimum availability.")
    } else {
        ("MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    }
}

fn progress_age(conditions: &[Value], moment: &Moment<'_>) -> Option<Duration> {
    let condition = conditions.iter().find(|condition| condition["type"] == "Progressing")?;
    if condition["reason"] == "NewReplicaSetAvailable" {
        return None;
    }
    let since = clock::parse(condition["lastUpdateTime"].as_str()?)?;
    Duration::try_from(moment.now.duration_since(since)).ok()
}

/// Sets a condition, unless its status and reason are unchanged. Moves a changed condition to the end of the list.
fn set_condition(conditions: &mut Vec<Value>, kind: &str, holds: bool, (reason, message): (&str, &str), now: &str) {
    let status = if holds { "True" } else { "False" };
    let known = conditions.iter().find(|condition| condition["type"] == *kind).cloned();
    if known.as_ref().is_some_and(|known| known["status"] == *status && known["reason"] == *reason) {
        return;
    }
    let since = known
        .filter(|known| known["status"] == *status)
        .map_or_else(|| json!(now), |known| known["lastTransitionTime"].clone());
    conditions.retain(|condition| condition["type"] != *kind);
    conditions.push(json!({"type": kind, "status": status, "reason": reason, "message": message,
        "lastUpdateTime": now, "lastTransitionTime": since}));
}

/// Records progress in a condition, which restarts the time until the progress deadline.
fn touch_condition(conditions: &mut Vec<Value>, kind: &str, texts: (&str, &str), now: &str) {
    let known = conditions.iter_mut().find(|condition| condition["type"] == *kind);
    match known.filter(|known| known["status"] == "True" && known["reason"] == *texts.0) {
        Some(known) => known["lastUpdateTime"] = json!(now),
        None => set_condition(conditions, kind, true, texts, now),
    }
}

/// Records an Event about a `ReplicaSet` that the Deployment scaled.
fn tell(state: &mut State, deployment: &Value, set: &str, before: i64, after: i64, moment: &Moment<'_>) {
    let direction = if after > before { "up" } else { "down" };
    let message = format!("Scaled {direction} replica set {set} from {before} to {after}");
    let name = format!("{}.{}", meta(deployment, "name"), state.uid().replace('-', "").get(..16).unwrap_or_default());
    let told = EventText { kind: "Normal", reason: "ScalingReplicaSet", message, by: "deployment-controller" };
    events::record(state, deployment, &name, &told, moment);
}
