//! The fields with the user's changes to the pod, and access to list items by name.

use serde_json::Value;

/// The field with the user's changes to the main container.
pub(crate) const CONTAINER: &str = "spec.container";

/// The field with the user's changes to the pod.
pub(crate) const POD_SPEC: &str = "spec.podSpec";

/// Returns the field `name` of an item, or `None` if the item has no name.
pub(crate) fn name_of(item: &Value) -> Option<&str> {
    item.get("name").and_then(Value::as_str)
}

/// Returns the items of the list in `field`. Returns an empty list if the field is not a list.
pub(crate) fn items<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value.get(field).and_then(Value::as_array).map(alloc::vec::Vec::as_slice).unwrap_or_default()
}
