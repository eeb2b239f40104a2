//! The object of a pass, with the facts that the pass knows about it.

use std::sync::Arc;

use serde_json::Value;

use super::selected::Selected;
use crate::watch::{ObjectKey, Served};

/// The object of a pass.
pub(crate) struct Subject<'a> {
    pub(crate) key: &'a ObjectKey,
    pub(crate) served: Served,
    pub(crate) selected: Selected,
    pub(crate) object: Arc<Value>,
    pub(crate) uid: String,
    /// The object's generation at the start of the pass, for which the pass makes the plan. After the pass has patched
    /// the object, `object` may have a newer generation.
    pub(crate) generation: i64,
}

impl<'a> Subject<'a> {
    /// Creates the subject of a pass.
    pub(crate) fn new(key: &'a ObjectKey, served: Served, selected: Selected, object: Arc<Value>) -> Self {
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        let generation = object["metadata"]["generation"].as_i64().unwrap_or(1);
        Self { key, served, selected, object, uid, generation }
    }
}
