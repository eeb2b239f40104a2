//! The reasons why a renderer does not accept an object.

use super::ObjectError;
use crate::contract::ResourceType;

/// A reason why a renderer does not accept an object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// The value is not a Kubernetes object.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// A layer's policy does not claim the object's kind.
    #[error("policy {policy} does not claim {of}")]
    NotClaimed {
        /// The name of the layer's policy.
        policy: String,
        /// The object's type.
        of: ResourceType,
    },
}
