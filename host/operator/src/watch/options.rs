//! How the cluster is watched.

use std::{fmt, time::Duration};

use super::{Allowance, ObjectKey, Scope};
use crate::queue::{Backoff, Urgency};

/// Called for each primary that is to be looked at again. It is called often, and must neither block nor call the watch.
pub type Wake = dyn Fn(ObjectKey, Urgency) + Send + Sync;

/// How the cluster is watched.
#[derive(Clone)]
pub struct WatchOptions {
    /// Where.
    pub scope: Scope,
    /// Where the operator lives; what is needed there by name is followed whatever the scope.
    pub home: String,
    /// Whether to look at Secrets: whether they are there, which keys they have, and a digest of their content.
    pub secrets: bool,
    /// What those digests are keyed with; known to this operator alone.
    pub digest_key: Vec<u8>,
    /// Whether lists are streamed where the server can do that.
    pub streaming_lists: bool,
    /// How long one watch lasts before it is renewed.
    pub watch: Duration,
    /// After how long everything is listed anew, for what no event told.
    pub relist: Duration,
    /// How often it is asked whether missing types are served, where definitions may not be watched; a tenth as often for
    /// those that everybody can do without.
    pub poll: Duration,
    /// How long to wait after failures.
    pub backoff: Backoff,
    /// Objects in one page of a list.
    pub page: u32,
    /// Needed ConfigMaps, label selectors of ConfigMaps, and needed Secrets of one namespace up to which each is watched by
    /// itself.
    pub most_named: usize,
    /// What the objects of one namespace may need together.
    pub allowance: Allowance,
    /// What jitter is drawn from.
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
            most_named: 8,
            allowance: Allowance::default(),
            seed: 0,
        }
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
