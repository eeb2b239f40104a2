//! Composes the content of an object's `status`, for passes and for previews without a cluster. This code has no I/O.
//!
//! | content | module |
//! |---|---|
//! | types and reasons of conditions | `conditions` |
//! | the status after a complete pass | `compose` |
//! | `Reconciling` and `Stalled`, from the other conditions | `progress` |
//! | the status after a pass that did not finish | `unfinished` |
//!
//! The conditions have no transition times here: `reconcile/status/times.rs` adds them, because they depend on the
//! previous status.

mod compose;
pub(crate) mod conditions;
mod progress;
mod unfinished;

use kaos_crds::NOT_OBSERVED;
use serde_json::Value;

pub use compose::{Standing, compose, missing};
pub use conditions::Hindrance;
pub(crate) use unfinished::amend;

/// Returns whether no operator has written this status yet: the status is missing, or has only the defaults from the
/// CRD.
pub(crate) fn is_unwritten(status: &Value) -> bool {
    let is_default = |(field, value): (&String, &Value)| match field.as_str() {
        "observedGeneration" => value.as_i64() == Some(NOT_OBSERVED),
        "ready" => value == false,
        _ => false,
    };
    status.as_object().is_none_or(|fields| fields.iter().all(is_default))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_status_is_unwritten_until_it_names_a_generation_or_has_another_writer() {
        for unwritten in [Value::Null, json!({}), json!({"observedGeneration": -1, "ready": false})] {
            assert!(is_unwritten(&unwritten), "{unwritten}");
        }
        let by_others = json!({"observedGeneration": -1, "ready": false, "phase": "Pending"});
        for written in [json!({"observedGeneration": 1}), json!({"phase": "Ready", "ready": true}), by_others] {
            assert!(!is_unwritten(&written), "{written}");
        }
    }
}
