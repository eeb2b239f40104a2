//! Where an object says what its pods look like, and the named items of its lists.

use serde_json::Value;

/// Where the object says what its container looks like.
pub(crate) const CONTAINER: &str = "spec.container";

/// Where the object says what its pod looks like.
pub(crate) const POD_SPEC: &str = "spec.podSpec";

/// The name of an item.
pub(crate) fn name_of(item: &Value) -> Option<&str> {
    item.get("name").and_then(Value::as_str)
}

/// The items of a list; none where there is no list.
pub(crate) fn items<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value.get(field).and_then(Value::as_array).map(alloc::vec::Vec::as_slice).unwrap_or_default()
}
