//! A renderer with the served types for which it was built.

use std::sync::Arc;

use kaos_policy::{contract::ResourceType, render::Renderer};

/// A renderer, and the types that the cluster served when the renderer was built.
pub(super) struct BuiltRenderer {
    pub(super) served: Vec<ResourceType>,
    pub(super) renderer: Arc<Renderer>,
}
