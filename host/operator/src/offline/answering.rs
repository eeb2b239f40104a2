//! What answers for objects offline.

use kaos_policy::render::Renderer;
use serde_json::Value;

/// What answers for objects.
pub trait Answering: Sync {
    /// What answers for one; none if no policy claims it.
    fn renderer(&self, object: &Value) -> Option<&Renderer>;

    /// Why the operator leaves everything of an object as it is, although a policy answers for it.
    fn left_as_is(&self, _object: &Value) -> Option<String> {
        None
    }
}
