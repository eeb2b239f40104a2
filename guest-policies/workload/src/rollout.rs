//! Reads the numbers of pods from a live Deployment.

use alloc::{borrow::ToOwned, string::String, vec::Vec};
use kaos_policy_sdk::{Object, object};
use serde_json::{Map, Value};

/// The counts of a live Deployment. If the Deployment does not exist yet, only `wanted` is set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rollout {
    /// The number of wanted pods.
    pub wanted: i64,
    /// The number of ready pods.
    pub ready: i64,
    /// The number of all pods, including pods of earlier templates.
    pub replicas: i64,
    available: i64,
    updated: i64,
    observed: bool,
    trouble: Option<String>,
    status: Option<Value>,
}

impl Rollout {
    /// Reads a live Deployment. `wanted` is used only while the Deployment does not exist.
    pub fn read(live: Option<&Object>, wanted: i64) -> Self {
        let Some(live) = live else { return Self { wanted, ..Self::default() } };
        let number = |path: &[&str]| live.at(path).and_then(Value::as_i64);
        let count = |field: &str| number(&["status", field]).unwrap_or_default();
        Self {
            wanted: number(&["spec", "replicas"]).unwrap_or(1),
            ready: count("readyReplicas"),
            replicas: count("replicas"),
            available: count("availableReplicas"),
            updated: count("updatedReplicas"),
            observed: count("observedGeneration") >= live.generation(),
            trouble: trouble(live),
            status: Some(block(live)),
        }
    }

    /// Returns whether pods of the current generation serve. The controller must have observed the generation. The
    /// number of available pods must be larger than the number of old pods, so at least one available pod is new.
    pub fn serves(&self) -> bool {
        let old = (self.replicas - self.updated).max(0);
        self.observed && self.wanted > 0 && self.updated > 0 && self.available > old
    }

    /// Returns a message with the counts. If no pod of the current generation serves, the message also says why pods do
    /// not start.
    pub fn message(&self) -> String {
        let mut message = format!("Deployment ready replicas: {}/{}", self.ready, self.wanted);
        if self.wanted == 0 && self.status.is_some() {
            message.push_str(" (scaled to zero)");
        }
        if let Some(trouble) = self.trouble.as_deref().filter(|_| !self.serves()) {
            message.push_str("; ");
            message.push_str(trouble);
        }
        message
    }

    /// Returns the content of `status.deployment`, or `None` if the Deployment does not exist.
    pub fn into_status(self) -> Option<Value> {
        self.status
    }
}

/// Returns the message of the condition that explains why pods are missing, or `None` without such a condition.
fn trouble(live: &Object) -> Option<String> {
    let holds = |kind: &str, status: &str| {
        let condition = live.condition(kind)?;
        let text = |field: &str| condition.get(field).and_then(Value::as_str);
        (text("status") == Some(status)).then(|| text("message").unwrap_or_default().to_owned())
    };
    holds("ReplicaFailure", "True").or_else(|| holds("Progressing", "False")).filter(|message| !message.is_empty())
}

/// Builds the content of `status.deployment` from the non-zero counts and the conditions.
fn block(live: &Object) -> Value {
    let mut block = Map::new();
    for field in ["replicas", "readyReplicas", "availableReplicas", "updatedReplicas"] {
        if let Some(count) = live.at(&["status", field]).and_then(Value::as_i64).filter(|count| *count != 0) {
            block.insert(field.into(), count.into());
        }
    }
    let conditions: Vec<Value> = live
        .at(&["status", "conditions"])
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(condition)
        .collect();
    if !conditions.is_empty() {
        block.insert("conditions".into(), Value::Array(conditions));
    }
    Value::Object(block)
}

/// Converts a Deployment's condition to a `metav1.Condition`, a type without an update time.
fn condition(live: &Value) -> Option<Value> {
    let text = |field: &str| live.get(field).and_then(Value::as_str).unwrap_or_default();
    let (kind, status) = (text("type"), text("status"));
    if kind.is_empty() || status.is_empty() {
        return None;
    }
    let reason = if text("reason").is_empty() { "Unknown" } else { text("reason") };
    let mut condition = object! { "type": kind, "status": status, "reason": reason, "message": text("message") };
    if let Some(since) = live.get("lastTransitionTime") {
        condition["lastTransitionTime"] = since.clone();
    }
    Some(condition)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn live(generation: i64, spec: i64, status: &Value) -> Rollout {
        let object = json!({"metadata": {"generation": generation}, "spec": {"replicas": spec}, "status": status});
        Rollout::read(Some(&Object::new(object)), 1)
    }

    #[test]
    fn a_deployment_serves_when_an_updated_pod_is_available() {
        let status = json!({"observedGeneration": 2, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1});
        let rollout = live(2, 1, &status);
        assert!(rollout.serves());
        assert_eq!(rollout.message(), "Deployment ready replicas: 1/1");
    }

    #[test]
    fn old_pods_do_not_count() {
        let status = json!({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1});
        assert!(!live(2, 1, &status).serves());
        let three = json!({"observedGeneration": 2, "replicas": 4, "updatedReplicas": 2, "availableReplicas": 3});
        assert!(live(2, 3, &three).serves());
    }

    #[test]
    fn an_unobserved_generation_does_not_serve() {
        let status = json!({"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1});
        assert!(!live(2, 1, &status).serves());
    }

    #[test]
    fn a_deployment_scaled_to_zero_does_not_serve() {
        let rollout = live(1, 0, &json!({"observedGeneration": 1}));
        assert!(!rollout.serves());
        assert_eq!(rollout.message(), "Deployment ready replicas: 0/0 (scaled to zero)");
    }

    #[test]
    fn the_message_names_the_reason_for_missing_pods() {
        let failure =
            json!([{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "no account"}]);
        let rollout = live(1, 1, &json!({"observedGeneration": 1, "conditions": failure}));
        assert_eq!(rollout.message(), "Deployment ready replicas: 0/1; no account");
    }

    #[test]
    fn the_status_block_leaves_zeros_out_and_keeps_conditions() {
        let conditions = json!([
            {"type": "Available", "status": "False", "reason": "R", "message": "m", "lastUpdateTime": "x", "lastTransitionTime": "t"},
            {"status": "True"},
        ]);
        let status = json!({"replicas": 1, "readyReplicas": 0, "updatedReplicas": 1, "conditions": conditions});
        assert_eq!(
            live(1, 1, &status).into_status().unwrap(),
            json!({"replicas": 1, "updatedReplicas": 1, "conditions": [
                {"type": "Available", "status": "False", "reason": "R", "message": "m", "lastTransitionTime": "t"}
            ]})
        );
    }

    #[test]
    fn without_a_deployment_no_wanted_replica_is_ready() {
        let rollout = Rollout::read(None, 3);
        assert_eq!(rollout.message(), "Deployment ready replicas: 0/3");
        assert!(rollout.into_status().is_none());
    }
}
