//! Why an object cannot be given to a renderer.

use super::ObjectError;
use crate::contract::ResourceType;

/// Why an object cannot be given to a renderer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// It is not an object of Kubernetes.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// A layer does not answer for the kind.
    #[error("policy {policy} does not claim {of}")]
    NotClaimed {
        /// The layer's name.
        policy: String,
        /// The object's type.
        of: ResourceType,
    },
}
