//! The key that decides which changes an effect counts together.

use kaos_policy::{contract::Reference, cut::cut};
use serde_json::Value;

use crate::plan::Field;

/// The maximum length of a path or of a message, in bytes.
pub(super) const TEXT: usize = 300;

/// The key of a group of changes: all of them change the same field in the same way.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PathKey {
    pub(super) kind: String,
    pub(super) child: Option<String>,
    pub(super) path: Option<String>,
    pub(super) change: &'static str,
    pub(super) value: Option<&'static str>,
}

impl PathKey {
    pub(super) fn of(
        object: &Reference,
        child: &Reference,
        path: Option<String>,
        change: &'static str,
        value: Option<&'static str>,
    ) -> Self {
        Self { kind: object.kind.clone(), child: Some(child.kind.clone()), path, change, value }
    }
}

/// Returns the key of a changed field.
pub(super) fn key_of(
    object: &Reference,
    child: &Reference,
    path: &str,
    Field { before, after, .. }: &Field,
) -> PathKey {
    let value = after.as_ref().or(before.as_ref()).map(type_of);
    let path = cut(path, TEXT).into_owned();
    PathKey::of(object, child, Some(path), word_of(before.is_some(), after.is_some()), value)
}

/// Returns the word for a change, given whether a value exists before and after the change.
pub(super) fn word_of(before: bool, after: bool) -> &'static str {
    match (before, after) {
        (false, _) => "Added",
        (true, false) => "Removed",
        (true, true) => "Changed",
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "list",
        Value::Object(_) => "object",
    }
}
