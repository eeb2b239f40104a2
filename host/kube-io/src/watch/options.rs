//! Options of the watch.

use std::{fmt, time::Duration};

use super::{Allowance, Scope, page_request::PageSize};
use crate::{backoff::Backoff, object_key::ObjectKey, queue::Urgency};

/// The callback for each object that needs a pass. The watch calls the callback often, so the callback must not block.
/// The callback must not call functions of the watch.
pub type Wake = dyn Fn(ObjectKey, Urgency) + Send + Sync;

/// Options of the watch.
#[derive(Clone)]
pub struct WatchOptions {
    /// The namespaces to watch.
    pub scope: Scope,
    /// The operator's own namespace. The watch follows needs by name in this namespace, even if the namespace is
    /// outside the scope.
    pub home: String,
    /// Whether the operator watches Secrets.
    ///
    /// Of each needed Secret, the operator stores the key names and a digest of the content.
    pub secrets: bool,
    /// The secret key for the digests of Secrets. Without the key, no program can compute the digests.
    pub digest_key: Vec<u8>,
    /// Whether the watch requests streaming lists. If the server does not support them, the watch uses ordinary lists.
    pub streaming_lists: bool,
    /// The time after which the operator renews a watch.
    pub watch: Duration,
    /// Time after which the watch lists everything again, in case an event was lost.
    pub relist: Duration,
    /// Interval of discovery for missing types, if the operator does not watch CustomResourceDefinitions. The interval
    /// is ten times as long if no claim requires the missing types.
    pub poll: Duration,
    /// The backoff after failures.
    pub backoff: Backoff,
    /// Maximum number of objects in a page of a list.
    pub page: u32,
    /// Maximum number of bytes of a page. The operator requests the objects of a longer page again in smaller pages.
    pub page_bytes: usize,
    /// Maximum number of separate watches in a namespace. The number applies separately to ConfigMaps that are needed
    /// by name, to ConfigMap selectors, and to Secrets. Above this number, one watch on metadata replaces the separate
    /// watches.
    pub most_named: usize,
    /// The limit for the needs of all objects in a namespace.
    pub allowance: Allowance,
    /// The seed of the random generators for jitter.
    pub seed: u64,
}

impl Default for WatchOptions {
    fn default() -> Self {
        Self {
            scope: Scope::All,
            home: String::new(),
            secrets: false,
            digest_key: Vec::new(),
            streaming_lists: false,
            watch: Duration::from_secs(290),
            relist: Duration::from_hours(6),
            poll: Duration::from_mins(1),
            backoff: Backoff { first: Duration::from_millis(250), max: Duration::from_mins(1) },
            page: 500,
            page_bytes: 16 << 20,
            most_named: 8,
            allowance: Allowance::default(),
            seed: 0,
        }
    }
}

impl WatchOptions {
    /// Returns the size of a page of a list.
    pub(super) fn page_size(&self) -> PageSize {
        PageSize { objects: Some(self.page), bytes: self.page_bytes }
    }
}

impl fmt::Debug for WatchOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scope, secrets, streaming_lists, watch, relist, .. } = self;
        f.debug_struct("WatchOptions")
            .field("scope", scope)
            .field("secrets", secrets)
            .field("streaming_lists", streaming_lists)
            .field("watch", watch)
            .field("relist", relist)
            .finish_non_exhaustive()
    }
}
