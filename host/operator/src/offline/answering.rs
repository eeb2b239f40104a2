//! Finds the renderer of each object, without a cluster.

use kaos_policy::render::Renderer;
use serde_json::Value;

/// Finds the renderer of each object: the policies that answer for the object, with their settings.
pub trait Answering: Sync {
    /// Returns the renderer of an object's policies. Returns `None` if no policy claims the object.
    fn renderer(&self, object: &Value) -> Option<&Renderer>;

    /// Returns why the operator leaves the children of an object unchanged although a policy answers for the object.
    /// Returns `None` if the operator applies the children as usual.
    fn left_as_is(&self, _object: &Value) -> Option<String> {
        None
    }
}
