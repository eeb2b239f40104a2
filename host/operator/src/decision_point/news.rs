//! Wakes the task that writes the objects for the decision point when an object appears in a new namespace.

use std::{collections::BTreeSet, sync::Mutex};

use kaos_crds::GROUP;
use tokio::sync::Notify;

use super::wanted::KIND;
use crate::{locking::lock, watch::ObjectKey};

/// Wakes the task after an event that concerns it: an object appeared in a namespace that the task has not handled, or
/// an AuthorizationPolicy changed.
#[derive(Debug, Default)]
pub(crate) struct News {
    known: Mutex<BTreeSet<String>>,
    came: Notify,
}

impl News {
    /// Wakes the task if this changed object concerns it. The watch calls this method for each changed object.
    pub(crate) fn about(&self, key: &ObjectKey) {
        let is_news = key.of.kind == KIND || !lock(&self.known).contains(&key.namespace);
        if key.of.group() == GROUP && is_news {
            self.came.notify_one();
        }
    }

    /// Records the namespaces that the task has handled.
    pub(super) fn know(&self, namespaces: BTreeSet<String>) {
        *lock(&self.known) = namespaces;
    }

    /// Waits for an event that concerns the task.
    pub(super) async fn came(&self) {
        self.came.notified().await;
    }
}
