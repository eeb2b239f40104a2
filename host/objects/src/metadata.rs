//! Reads an object's metadata, and names the labels and annotations that the host reads.

use serde_json::Value;

/// The label that every child has.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// The value of [`MANAGED_BY`]. This name is also the operator's field manager.
pub const MANAGER: &str = "kaos-operator";

/// The annotation that `kubectl apply` writes. The annotation contains a copy of the whole applied object.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Returns the owner references of an object.
pub fn owners(object: &Value) -> &[Value] {
    object["metadata"]["ownerReferences"].as_array().map_or(&[], Vec::as_slice)
}

/// Returns the owner reference of an object's controller.
pub fn controller(object: &Value) -> Option<&Value> {
    owners(object).iter().find(|owner| owner["controller"] == true)
}
