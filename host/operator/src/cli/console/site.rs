//! What all requests to the console share.

use std::sync::Arc;

use super::model::Model;

/// What the pages are made from.
#[derive(Clone)]
pub(super) struct Site {
    pub(super) model: Arc<Model>,
    /// The secret path below which all addresses are.
    pub(super) base: Arc<str>,
}
