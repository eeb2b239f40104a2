//! The object of a Gadget: its kind, and how the policy reads it.

use kaos_policy::contract::Subject;
use serde_json::Value;

/// The API version of the kind.
pub const API_VERSION: &str = "test.example.com/v1";
/// The kind.
pub const KIND: &str = "Gadget";

/// The object of a subject, parsed.
pub(super) fn object(subject: &Subject) -> Value {
    serde_json::from_str(&subject.object).unwrap_or_default()
}

pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
