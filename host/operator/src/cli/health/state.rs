//! The state of one object in one line, from its status.

use serde_json::Value;

use super::{
    object_health::{Health, HealthState, first_open, is_seen, told},
    pod,
};
use crate::status::conditions::{READY, STALLED, condition, conditions, is_true};

/// Reads the state of an object for which a policy answers. If no pass has seen the newest generation, the object is
/// not ready.
pub(super) fn health_of_claimed(object: &Value) -> Health {
    let is_deleted = !object["metadata"]["deletionTimestamp"].is_null();
    match (is_deleted || is_seen(object), object["status"]["conditions"].is_null()) {
        (true, _) => health(object),
        (false, true) => Health::new(HealthState::NotReady, "no operator has worked on this object yet"),
        (false, false) => Health::new(HealthState::NotReady, "the operator has not seen the newest generation yet"),
    }
}

/// Reads the state of an object.
pub(super) fn health(object: &Value) -> Health {
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
    let health = match (group, object["kind"].as_str().unwrap_or_default()) {
        ("apps", "Deployment" | "StatefulSet" | "ReplicaSet") => replicated(object),
        ("apps", "DaemonSet") => counted(&object["status"], "numberReady", "desiredNumberScheduled"),
        ("batch", "Job") => job(object),
        ("", "Pod") => pod::health(object),
        ("", "PersistentVolumeClaim") => claim(object),
        _ => conditioned(object),
    };
    if object["metadata"]["deletionTimestamp"].is_null() {
        return health;
    }
    Health::new(HealthState::NotReady, format!("is being deleted; {}", health.line))
}

/// Reads the state from conditions: the conditions of an object with a policy, or of a child such as a route.
fn conditioned(object: &Value) -> Health {
    if let Some(ready) = condition(object, READY) {
        if ready["status"] == "True" {
            let line = object["status"]["message"].as_str().unwrap_or_default();
            return Health::new(HealthState::Ready, line);
        }
        let state = if is_true(object, STALLED) { HealthState::Stalled } else { HealthState::NotReady };
        return Health::new(state, told(first_open(object).unwrap_or(ready)));
    }
    let parents = object["status"]["parents"].as_array().into_iter().flatten();
    let of_parents = parents.flat_map(|parent| parent["conditions"].as_array().into_iter().flatten());
    let mut all = of_parents.chain(conditions(object)).filter(|it| it["type"] != STALLED).peekable();
    if all.peek().is_none() {
        return Health::new(HealthState::Exists, "");
    }
    match all.find(|condition| condition["status"] == "False") {
        Some(open) => Health::new(HealthState::NotReady, told(open)),
        None => Health::new(HealthState::Ready, ""),
    }
}

fn replicated(object: &Value) -> Health {
    let (spec, status) = (&object["spec"], &object["status"]);
    let wanted = spec["replicas"].as_i64().unwrap_or(1);
    let number = |field: &str| status[field].as_i64().unwrap_or_default();
    let (ready, is_set) = (number("readyReplicas"), object["kind"] == "ReplicaSet");
    let line = format!("{ready} of {wanted} pods ready");
    if !is_set && spec["paused"] == true {
        return Health::ready_if(ready == wanted, format!("{line}; paused"));
    }
    let broken = conditions(object).find(|condition| {
        let of = condition["type"].as_str().unwrap_or_default();
        (of == "ReplicaFailure" && condition["status"] == "True")
            || (of == "Progressing" && condition["status"] == "False")
    });
    if let Some(broken) = broken.filter(|_| ready < wanted) {
        return Health::new(HealthState::NotReady, format!("{line}; {}", told(broken)));
    }
    let updated = number("updatedReplicas");
    if !is_set && updated < wanted {
        return Health::new(
            HealthState::NotReady,
            format!("{line}; {updated} of {wanted} pods have the newest template"),
        );
    }
    if !is_set && !is_observed(object) {
        return Health::new(HealthState::NotReady, format!("{line}; Kubernetes has not seen the newest spec yet"));
    }
    Health::ready_if(ready >= wanted, line)
}

fn is_observed(object: &Value) -> bool {
    let newest = object["metadata"]["generation"].as_i64();
    let seen = object["status"]["observedGeneration"].as_i64();
    newest.is_none() || seen >= newest
}

fn counted(status: &Value, ready: &str, wanted: &str) -> Health {
    let number = |field: &str| status[field].as_i64().unwrap_or_default();
    let (ready, wanted) = (number(ready), number(wanted));
    Health::ready_if(ready >= wanted, format!("{ready} of {wanted} pods ready"))
}

fn job(object: &Value) -> Health {
    if is_true(object, "Complete") {
        return Health::new(HealthState::Ready, "complete");
    }
    match condition(object, "Failed").filter(|failed| failed["status"] == "True") {
        Some(failed) => Health::new(HealthState::Stalled, told(failed)),
        None => Health::new(HealthState::NotReady, "running"),
    }
}

fn claim(object: &Value) -> Health {
    let phase = object["status"]["phase"].as_str().unwrap_or("Pending");
    Health::ready_if(phase == "Bound", phase)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn health(object: &Value) -> (HealthState, String) {
        let Health { state, line } = super::health(object);
        (state, line)
    }

    #[test]
    fn the_first_open_condition_of_a_pass_explains_an_object() {
        let object = |conditions: &[[&str; 4]]| {
            let one = |[of, status, reason, message]: &[&str; 4]| json!({"type": of, "status": status, "reason": reason, "message": message});
            json!({"apiVersion": "example.org/v1", "kind": "Gadget",
                "status": {"conditions": conditions.iter().map(one).collect::<Vec<_>>()}})
        };
        let waiting = object(&[
            ["Accepted", "Unknown", "Waiting", "see Resolved"],
            ["Resolved", "False", "NotFound", "Widget w not found"],
            ["Applied", "False", "Refused", "no plan"],
            ["Ready", "False", "Refused", "no plan"],
        ]);
        assert_eq!(health(&waiting), (HealthState::NotReady, "NotFound: Widget w not found".to_owned()));
        let invalid = object(&[
            ["Accepted", "False", "InvalidSpec", "spec.model: unknown"],
            ["Resolved", "False", "NotFound", "x"],
            ["Ready", "False", "Refused", "no plan"],
            ["Stalled", "True", "InvalidSpec", "spec.model: unknown"],
        ]);
        assert_eq!(health(&invalid), (HealthState::Stalled, "InvalidSpec: spec.model: unknown".to_owned()));
        let serving = object(&[["Resolved", "False", "NotFound", "x"], ["Ready", "True", "Ready", ""]]);
        assert_eq!(health(&serving).0, HealthState::Ready, "a lost dependency does not stop a serving object");
    }

    #[test]
    fn a_workload_is_ready_only_with_all_pods_of_its_newest_template() {
        let workload = |status: Value| {
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"generation": 2},
                "spec": {"replicas": 2, "template": {}}, "status": status})
        };
        let full = json!({"observedGeneration": 2, "readyReplicas": 2, "updatedReplicas": 2});
        assert_eq!(health(&workload(full.clone())), (HealthState::Ready, "2 of 2 pods ready".to_owned()));
        for (field, value) in [("observedGeneration", 1), ("readyReplicas", 1), ("updatedReplicas", 1)] {
            let mut status = full.clone();
            status[field] = json!(value);
            assert_eq!(health(&workload(status)).0, HealthState::NotReady, "{field}");
        }
        let refused = json!({"conditions": [{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate",
            "message": "exceeded quota"}]});
        let told = health(&workload(refused)).1;
        assert_eq!(told, "0 of 2 pods ready; FailedCreate: exceeded quota");
    }

    #[test]
    fn other_kinds_show_what_their_status_says() {
        let route = json!({"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "status": {"parents": [
            {"conditions": [{"type": "Accepted", "status": "False", "reason": "NoMatchingParent"}]}]}});
        assert_eq!(health(&route), (HealthState::NotReady, "NoMatchingParent".to_owned()));
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap"});
        assert_eq!(health(&map), (HealthState::Exists, String::new()));
        let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "status": {"phase": "Pending"},
            "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
        assert_eq!(health(&claim), (HealthState::NotReady, "is being deleted; Pending".to_owned()));
    }
}
