//! A renderer with the types that it was built for.

use std::sync::Arc;

use kaos_policy::{contract::ResourceType, render::Renderer};

/// A renderer, and the types that were served when it was built.
pub(super) struct BuiltRenderer {
    pub(super) served: Vec<ResourceType>,
    pub(super) renderer: Arc<Renderer>,
}
