//! The kind `Gadget`, and functions that read a Gadget.

use kaos_policy::contract::Subject;
use serde_json::Value;

/// The API version of Gadgets.
pub const API_VERSION: &str = "test.example.com/v1";
/// The kind of Gadgets.
pub const KIND: &str = "Gadget";

/// Parses the object of a subject.
pub(super) fn object(subject: &Subject) -> Value {
    serde_json::from_str(&subject.object).unwrap_or_default()
}

pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
