//! Notifies the task for the decision point of objects in new namespaces.

use std::{collections::BTreeSet, sync::Mutex};

use kaos_crds::GROUP;
use tokio::sync::Notify;

use super::wanted::KIND;
use crate::{locking::lock, watch::ObjectKey};

/// Notifies the task of news: an object in a namespace that the task does not know, or a change of an
/// AuthorizationPolicy.
#[derive(Debug, Default)]
pub(crate) struct News {
    known: Mutex<BTreeSet<String>>,
    came: Notify,
}

impl News {
    /// Notifies the task if a reported object is news. The watch reports each changed object.
    pub(crate) fn about(&self, key: &ObjectKey) {
        let is_news = key.of.kind == KIND || !lock(&self.known).contains(&key.namespace);
        if key.of.group() == GROUP && is_news {
            self.came.notify_one();
        }
    }

    /// Records the namespaces that the task knows.
    pub(super) fn know(&self, namespaces: BTreeSet<String>) {
        *lock(&self.known) = namespaces;
    }

    /// Waits for news.
    pub(super) async fn came(&self) {
        self.came.notified().await;
    }
}
