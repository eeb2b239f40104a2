//! Assigns renderers to objects, without a cluster.

use kaos_policy::render::Renderer;
use serde_json::Value;

/// Assigns renderers to objects.
pub trait Answering: Sync {
    /// Returns the renderer of an object's policies, or none if no policy claims the object.
    fn renderer(&self, object: &Value) -> Option<&Renderer>;

    /// Returns why the operator leaves the children of an object as they are, although a policy answers for it.
    fn left_as_is(&self, _object: &Value) -> Option<String> {
        None
    }
}
