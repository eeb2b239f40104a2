//! Removes the values of a Secret before a policy sees the Secret, and keeps the keys. A Secret from the policy's own
//! plan is no exception, because another client may have added values to this Secret.

use serde_json::Value;

use crate::stamp::LAST_APPLIED;

/// Replaces every value of a Secret with an empty text, and keeps the keys.
pub(super) fn empty(secret: &mut Value) {
    for field in ["data", "stringData"] {
        match secret.get_mut(field) {
            None => {}
            Some(Value::Object(entries)) => entries.values_mut().for_each(|value| *value = Value::from("")),
            Some(other) => *other = Value::Null,
        }
    }
    if let Some(annotations) = secret.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.remove(LAST_APPLIED);
    }
}
