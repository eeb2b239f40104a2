//! A renderer, stored with the types that the cluster served when the renderer was built.

use std::sync::Arc;

use kaos_policy::{contract::ResourceType, render::Renderer};

/// A renderer, and the types that the cluster served when the renderer was built.
pub(super) struct BuiltRenderer {
    pub(super) served: Vec<ResourceType>,
    pub(super) renderer: Arc<Renderer>,
}
