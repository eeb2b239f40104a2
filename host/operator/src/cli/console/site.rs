//! The state that all requests to the console share.

use std::sync::Arc;

use super::model::Model;

/// The inputs of the pages.
#[derive(Clone)]
pub(super) struct Site {
    pub(super) model: Arc<Model>,
    /// The secret path below which all addresses are.
    pub(super) base: Arc<str>,
}
