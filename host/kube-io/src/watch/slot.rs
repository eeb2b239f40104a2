//! A watch with its cached objects and its state.

use std::sync::Arc;

use kaos_objects::ResourceType;
use tokio::sync::Notify;

use super::{
    by_label::ByLabel, cache::Cache, cached_object::Extract, dictionary::Dictionary, discovery::Served,
    fetched_objects::FetchedObjects, plan::Spec,
};

/// The data of one watch.
#[derive(Debug)]
pub(super) struct Slot {
    /// Distinguishes this watch from an earlier watch on the same objects.
    pub(super) id: u64,
    pub(super) of: Arc<ResourceType>,
    pub(super) extract: Extract,
    pub(super) dictionary: Arc<Dictionary>,
    pub(super) cache: Cache,
    pub(super) fetched: FetchedObjects,
    /// The labels of objects. This index is filled only if the watch covers metadata and selectors need the labels.
    pub(super) labels: ByLabel,
    /// Notified when the watch's task has to read needed objects, or when the first list is complete.
    pub(super) wake_task: Arc<Notify>,
}

/// A watch that a task runs.
#[derive(Debug, Clone)]
pub(super) struct Handle {
    pub(super) spec: Arc<Spec>,
    pub(super) id: u64,
    pub(super) served: Served,
    pub(super) extract: Extract,
    pub(super) dictionary: Arc<Dictionary>,
    pub(super) wake_task: Arc<Notify>,
}
