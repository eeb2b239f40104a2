//! The measurements of this crate. The operator implements the trait [`IoMetrics`], so that one table of the operator
//! contains the names of all metrics.

use std::{fmt, time::Duration};

use kaos_objects::ResourceType;

/// A function that updates certain metrics immediately before a client reads the metrics.
pub type Refresh = Box<dyn Fn(&dyn IoMetrics) + Send + Sync>;

/// Receives the measurements of the client and of the watches. Every method is cheap, and any thread can call it.
pub trait IoMetrics: fmt::Debug + Send + Sync {
    /// Records a request to the API server.
    fn api_call(&self, verb: &'static str, group: &str, resource: &str, code: &str, took: Duration);

    /// Sets the state of the watch on a type. `None` means that the type is no longer watched.
    fn watch(&self, of: &ResourceType, state: Option<WatchState>);

    /// Counts an error of a watch.
    fn watch_error(&self, of: &ResourceType, reason: &str);

    /// Sets the number of barred namespaces: the scope lists these namespaces, but the operator can read nothing in
    /// them, and can read in other namespaces.
    fn barred(&self, namespaces: usize);

    /// Sets the number and size of the cached objects of a type.
    fn stored(&self, of: &ResourceType, objects: usize, bytes: usize);

    /// Registers `refresh`, which runs each time before a client reads the metrics.
    fn before_reading(&self, refresh: Refresh);
}

/// The state of the watch on a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WatchState {
    /// The cluster does not serve the type.
    Unserved,
    /// The operator has no right to watch the type.
    Forbidden,
    /// The first list is in progress.
    Listing,
    /// The cache follows the cluster.
    Synced,
    /// The watch failed, and the operator retries it.
    Failing,
}

impl WatchState {
    /// All states.
    pub const ALL: [Self; 5] = [Self::Unserved, Self::Forbidden, Self::Listing, Self::Synced, Self::Failing];

    /// Returns the value of the metric's label for this state.
    pub fn label(self) -> &'static str {
        match self {
            Self::Unserved => "unserved",
            Self::Forbidden => "forbidden",
            Self::Listing => "listing",
            Self::Synced => "synced",
            Self::Failing => "failing",
        }
    }
}
