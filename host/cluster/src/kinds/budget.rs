//! Rules of `PodDisruptionBudget`s.

use serde_json::{Value, json};

use crate::status::Cause;

/// Validates a `PodDisruptionBudget`.
pub(super) fn check(new: &Value) -> Vec<Cause> {
    let spec = &new["spec"];
    let mut causes = Vec::new();
    if !spec["minAvailable"].is_null() && !spec["maxUnavailable"].is_null() {
        let shown = json!({"MinAvailable": spec["minAvailable"], "MaxUnavailable": spec["maxUnavailable"]});
        let message = "minAvailable and maxUnavailable cannot be both set";
        causes.push(Cause::invalid("spec", &shown.to_string(), message));
    }
    for field in ["minAvailable", "maxUnavailable"] {
        let number = spec[field].as_i64().unwrap_or_default();
        if number < 0 {
            let path = format!("spec.{field}");
            causes.push(Cause::invalid(&path, &number.to_string(), "must be greater than or equal to 0"));
        }
    }
    causes
}
