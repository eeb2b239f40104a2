//! The status of an object whose pass did not finish: no policy answers for it, or its pass panicked or took too long.
//!
//! The rest of the status stays, because the operator knows nothing better.

use std::time::Duration;

use serde_json::{Value, json};

use crate::reconcile::{
    children::decide::is_going,
    context::Context,
    error::{CallError, Class},
};
use crate::watch::ObjectKey;

/// Maximum time for writing the status. The cause of the halt may delay this write too.
const TELLING: Duration = Duration::from_secs(10);

/// The reason why the pass did not finish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Halt {
    /// No policy answers for the object.
    NoPolicy,
    /// The pass exceeded this time.
    Late(Duration),
    /// The pass panicked with this message.
    Panicked(String),
}

impl Halt {
    /// Returns the condition that reports the halt: type, reason and message.
    fn condition(&self) -> (&'static str, &'static str, String) {
        match self {
            Self::NoPolicy => (
                "Accepted",
                "NoPolicy",
                "no policy answers for objects of this kind here: install one, or widen the scope of one".to_owned(),
            ),
            Self::Late(time) => (
                "Applied",
                "ApplyFailed",
                format!(
                    "the pass was not over within {} s and is made again: see what the API server waits for",
                    time.as_secs()
                ),
            ),
            Self::Panicked(message) => (
                "Applied",
                "ApplyFailed",
                format!(
                    "the operator failed ({message}) and tries again: this is a mistake of the operator, please report it"
                ),
            ),
        }
    }
}

impl Context {
    /// Reports the halt in the status and as an Event, unless that is done already.
    pub(crate) async fn tell_halt(&self, key: &ObjectKey, halt: &Halt) -> Result<(), CallError> {
        let Some(object) = self.watch.object(key).filter(|object| !is_going(object)) else { return Ok(()) };
        let served = self.served(&key.of)?;
        let mut memory = self.memories.take(key, object["metadata"]["uid"].as_str().unwrap_or_default());
        let mut status = halted(&object, halt);
        let told = self.publish(key, &served, &object, &mut status, &mut memory);
        let told = tokio::time::timeout(TELLING, told).await.unwrap_or_else(|_| {
            let message = format!("there was no answer within {} s", TELLING.as_secs());
            Err(CallError { what: format!("apply status of {key}"), class: Class::Transient(None), message })
        });
        match told {
            Ok(_) => {
                self.memories.put(key, memory);
                Ok(())
            }
            Err(error) => {
                tracing::debug!(object = %key, %error, "it could not be told that a pass came to no end");
                Err(error)
            }
        }
    }
}

/// Returns the live status with the halt's conditions.
fn halted(object: &Value, halt: &Halt) -> Value {
    let mut status = if object["status"].is_object() { object["status"].clone() } else { json!({"ready": false}) };
    let (of, reason, message) = halt.condition();
    let generation = object["metadata"]["generation"].as_i64().unwrap_or(1);
    let mut conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    let mut set = |of: &str, status: &str, reason: &str| {
        let condition = json!({"type": of, "status": status, "reason": reason, "message": message,
            "observedGeneration": generation});
        match conditions.iter_mut().find(|condition| condition["type"] == of) {
            Some(known) => *known = condition,
            None => conditions.push(condition),
        }
    };
    set(of, "False", reason);
    // Readiness of the same generation stays. Readiness of a new generation is unknown.
    if status["observedGeneration"] != generation {
        set("Ready", "Unknown", "Unavailable");
    }
    status["conditions"] = json!(conditions);
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_stays_and_what_is_wrong_is_added() {
        let object = json!({"metadata": {"generation": 2}, "status": {"observedGeneration": 2, "phase": "Ready", "ready": true,
            "conditions": [{"type": "Accepted", "status": "True"}, {"type": "Ready", "status": "True", "reason": "Ready"}]}});
        let status = halted(&object, &Halt::Late(Duration::from_mins(1)));
        assert_eq!((&status["phase"], &status["ready"]), (&json!("Ready"), &json!(true)));
        let told: Vec<_> =
            status["conditions"].as_array().unwrap().iter().map(|c| (&c["type"], &c["status"])).collect();
        assert_eq!(
            told,
            [
                (&json!("Accepted"), &json!("True")),
                (&json!("Ready"), &json!("True")),
                (&json!("Applied"), &json!("False"))
            ]
        );
    }

    #[test]
    fn of_a_generation_that_got_no_pass_nobody_knows_whether_it_is_ready() {
        let status = halted(&json!({"metadata": {"generation": 1}}), &Halt::NoPolicy);
        assert_eq!(status["ready"], false);
        assert_eq!(status["conditions"][0]["reason"], "NoPolicy");
        assert_eq!(status["conditions"][1]["status"], "Unknown");
    }
}
