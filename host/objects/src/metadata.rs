//! Reads an object's metadata, and names the labels and annotations that the host reads.

use serde_json::Value;

/// Label of every child.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// The value of [`MANAGED_BY`], and the operator's name as a field manager.
pub const MANAGER: &str = "kaos-operator";

/// Annotation that `kubectl apply` writes: the whole applied object, which repeats the object's own fields.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The owner references of an object.
pub fn owners(object: &Value) -> &[Value] {
    object["metadata"]["ownerReferences"].as_array().map_or(&[], Vec::as_slice)
}

/// The owner reference of an object's controller.
pub fn controller(object: &Value) -> Option<&Value> {
    owners(object).iter().find(|owner| owner["controller"] == true)
}
