//! Composes the status of an object after a pass that did not finish. Changes only the observed generation and the
//! conditions that report the unfinished pass. The rest of the live status stays, because this pass computed no new
//! values.

use kaos_policy::contract::Truth;
use serde_json::{Value, json};

use super::{
    conditions::{READY, reason, written},
    progress::{is_progress, one},
};

/// Returns the live status, changed so that the condition of type `of` is false. `is_lasting` is true if a person must
/// act.
pub(crate) fn amend(object: &Value, of: &str, why: &str, message: &str, is_lasting: bool) -> Value {
    let mut status = if object["status"].is_object() { object["status"].clone() } else { json!({"ready": false}) };
    let generation = object["metadata"]["generation"].as_i64().unwrap_or(1);
    let mut conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    conditions.retain(|condition| !is_progress(condition["type"].as_str().unwrap_or_default()));
    let mut set = |of: &str, status: Truth, why: &str| {
        let condition = written(of, status, why, message, generation);
        match conditions.iter_mut().find(|condition| condition["type"] == of) {
            Some(known) => *known = condition,
            None => conditions.push(condition),
        }
    };
    set(of, Truth::No, why);
    // Keep the condition `Ready` if it is about the same generation. For a new generation, the readiness is unknown.
    if status["observedGeneration"] != generation {
        set(READY, Truth::Unknown, reason::UNAVAILABLE);
    }
    conditions.push(one(why, message, is_lasting, generation));
    status["conditions"] = json!(conditions);
    status["observedGeneration"] = generation.into();
    status
}

#[cfg(test)]
mod tests {
    use super::{super::conditions::ACCEPTED, *};

    #[test]
    fn an_unfinished_pass_keeps_the_known_status_and_adds_its_condition() {
        let object = json!({"metadata": {"generation": 2}, "status": {"observedGeneration": 2, "phase": "Ready", "ready": true,
            "conditions": [{"type": "Accepted", "status": "True"}, {"type": "Ready", "status": "True", "reason": "Ready"}]}});
        let status = amend(&object, super::super::conditions::APPLIED, reason::APPLY_FAILED, "late", false);
        assert_eq!((&status["phase"], &status["ready"]), (&json!("Ready"), &json!(true)));
        let told: Vec<_> =
            status["conditions"].as_array().unwrap().iter().map(|c| (&c["type"], &c["status"])).collect();
        assert_eq!(
            told,
            [
                (&json!("Accepted"), &json!("True")),
                (&json!("Ready"), &json!("True")),
                (&json!("Applied"), &json!("False")),
                (&json!("Reconciling"), &json!("True"))
            ]
        );
    }

    #[test]
    fn readiness_is_unknown_for_a_generation_without_a_pass() {
        let status = amend(&json!({"metadata": {"generation": 1}}), ACCEPTED, reason::NO_POLICY, "none", true);
        assert_eq!(status["ready"], false);
        assert_eq!(status["conditions"][0]["reason"], "NoPolicy");
        assert_eq!(status["conditions"][1]["status"], "Unknown");
        assert_eq!(status["conditions"][2]["type"], "Stalled");
        assert_eq!(status["observedGeneration"], 1, "tools ignore conditions of an older generation");
    }

    #[test]
    fn a_lasting_reason_replaces_a_passing_one() {
        let object = json!({"metadata": {"generation": 2}, "status": {"observedGeneration": 2,
            "conditions": [{"type": "Reconciling", "status": "True", "reason": "Progressing"}]}});
        let status = amend(&object, ACCEPTED, reason::NO_POLICY, "none", true);
        let told: Vec<_> = status["conditions"].as_array().unwrap().iter().map(|it| &it["type"]).collect();
        assert_eq!(told, ["Accepted", "Stalled"]);
    }
}
