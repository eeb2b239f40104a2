//! What a pass works on.

use std::sync::Arc;

use serde_json::Value;

use super::select::Selected;
use crate::watch::{ObjectKey, Served};

/// What a pass works on.
pub(super) struct Subject<'a> {
    pub(super) key: &'a ObjectKey,
    pub(super) served: Served,
    pub(super) selected: Selected,
    pub(super) object: Arc<Value>,
    pub(super) uid: String,
    /// The generation that the pass looks at. What our own writes are answered with may be newer: of that nobody has made
    /// a plan yet.
    pub(super) generation: i64,
}
