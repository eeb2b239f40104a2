//! One watch: what it is for, and what it has brought.

use std::sync::Arc;

use kaos_policy::contract::ResourceType;
use tokio::sync::Notify;

use super::{by_label::ByLabel, discovery::Served, facts::Facts, item::Extract, plan::Spec, shelf::Shelf};

/// What one watch has brought.
#[derive(Debug)]
pub(super) struct Slot {
    /// Tells a watch from an earlier one of the same objects.
    pub(super) id: u64,
    pub(super) of: Arc<ResourceType>,
    pub(super) extract: Extract,
    pub(super) shelf: Shelf,
    pub(super) facts: Facts,
    /// Of what is selected by label where only metadata is watched.
    pub(super) labels: ByLabel,
    /// Told when something is to be done beside watching: needed objects read, or the first list is there.
    pub(super) errand: Arc<Notify>,
}

/// A watch that is to run.
#[derive(Debug, Clone)]
pub(super) struct Handle {
    pub(super) spec: Arc<Spec>,
    pub(super) id: u64,
    pub(super) served: Served,
    pub(super) extract: Extract,
    pub(super) errand: Arc<Notify>,
}
