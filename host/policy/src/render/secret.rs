//! A Secret as policies see it: which keys it has, and nothing that they hold. One that a policy's own plan brought may be
//! filled by somebody else.

use serde_json::Value;

use crate::stamp::LAST_APPLIED;

/// Leaves the keys of a Secret, each with an empty text.
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
