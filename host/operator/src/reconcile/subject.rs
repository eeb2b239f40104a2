//! The object of a pass, with everything that the pass knows about it.

use std::sync::Arc;

use serde_json::Value;

use super::select::Selected;
use crate::watch::{ObjectKey, Served};

/// The object of a pass.
pub(super) struct Subject<'a> {
    pub(super) key: &'a ObjectKey,
    pub(super) served: Served,
    pub(super) selected: Selected,
    pub(super) object: Arc<Value>,
    pub(super) uid: String,
    /// The generation that the pass handles. The answers to our own writes may have a newer one, without a plan yet.
    pub(super) generation: i64,
}
