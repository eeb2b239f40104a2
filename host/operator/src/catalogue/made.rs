//! A renderer, and what it was made for.

use std::sync::Arc;

use kaos_policy::{contract::ResourceType, render::Renderer};

/// A renderer, and the types that were served when it was made.
pub(super) struct Made {
    pub(super) served: Vec<ResourceType>,
    pub(super) renderer: Arc<Renderer>,
}
