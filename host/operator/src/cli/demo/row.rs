//! One object as a row of the demo's table, read from the object's status in the cluster.

use kaos_policy::printable::printable;
use serde_json::Value;

/// One line of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    /// Kind and name.
    pub(super) object: String,
    /// `status.phase`; empty while the object has no status.
    pub(super) phase: String,
    /// The common conditions, in the order in which they become true.
    pub(super) conditions: [ConditionMark; 4],
    /// Ready and wanted pods, such as `1/2`.
    pub(super) pods: String,
    /// Name, version and short digest of the policy that answered.
    pub(super) policy: String,
    /// `status.message` of the object.
    pub(super) message: String,
    /// Whether the status is for the current generation and says that the object is ready.
    pub(super) ready: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConditionMark {
    /// The status of the condition is `True`.
    Good,
    /// The status of the condition is `False`.
    Bad,
    /// The status of the condition is `Unknown`, or the object does not have the condition.
    Open,
}

/// The conditions that every kind has.
pub(super) const CONDITIONS: [&str; 4] = ["Accepted", "Resolved", "Applied", "Ready"];

impl Row {
    /// Reads an object from the cluster.
    pub(super) fn of(object: &Value) -> Self {
        let text = |value: &Value| printable(value.as_str().unwrap_or_default()).into_owned();
        let (metadata, status) = (&object["metadata"], &object["status"]);
        let conditions = CONDITIONS.map(|of| mark(status, of));
        let is_current = status["observedGeneration"] == metadata["generation"];
        Self {
            object: format!("{}/{}", text(&object["kind"]), text(&metadata["name"])),
            phase: text(&status["phase"]),
            conditions,
            pods: pods(&status["deployment"]),
            policy: policy(&status["policy"]),
            message: text(&status["message"]),
            ready: is_current && conditions[3] == ConditionMark::Good,
        }
    }
}

fn mark(status: &Value, of: &str) -> ConditionMark {
    let condition = status["conditions"].as_array().into_iter().flatten().find(|condition| condition["type"] == of);
    match condition.and_then(|condition| condition["status"].as_str()) {
        Some("True") => ConditionMark::Good,
        Some("False") => ConditionMark::Bad,
        _ => ConditionMark::Open,
    }
}

fn pods(deployment: &Value) -> String {
    let count = |field: &str| deployment[field].as_u64().unwrap_or_default();
    if deployment.is_null() { "-".to_owned() } else { format!("{}/{}", count("readyReplicas"), count("replicas")) }
}

fn policy(policy: &Value) -> String {
    let text = |field: &str| policy[field].as_str().unwrap_or_default();
    let digest = text("digest");
    let hex = digest.rsplit(':').next().unwrap_or_default();
    let short: String = hex.chars().take(8).collect();
    printable([text("name"), text("version"), &short].join(" ").trim()).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_without_a_status_shows_each_condition_as_unknown() {
        let row = Row::of(&json!({"kind": "Kite", "metadata": {"name": "red", "generation": 1}}));
        assert_eq!(row.conditions, [ConditionMark::Open; 4]);
        assert_eq!((row.object.as_str(), row.pods.as_str(), row.policy.as_str()), ("Kite/red", "-", ""));
        assert!(!row.ready);
    }

    #[test]
    fn a_status_of_an_older_generation_does_not_count_as_ready() {
        let mut object = json!({
            "kind": "Kite",
            "metadata": {"name": "red", "generation": 2},
            "status": {
                "observedGeneration": 1,
                "phase": "Ready",
                "deployment": {"replicas": 2, "readyReplicas": 1},
                "policy": {"name": "kite", "version": "1.0.0", "digest": "sha256:0123456789abcdef"},
                "conditions": [{"type": "Ready", "status": "True"}, {"type": "Applied", "status": "False"}],
            },
        });
        let row = Row::of(&object);
        assert_eq!(row.conditions, [ConditionMark::Open, ConditionMark::Open, ConditionMark::Bad, ConditionMark::Good]);
        assert_eq!((row.pods.as_str(), row.policy.as_str()), ("1/2", "kite 1.0.0 01234567"));
        assert!(!row.ready);
        object["status"]["observedGeneration"] = json!(2);
        assert!(Row::of(&object).ready);
    }
}
