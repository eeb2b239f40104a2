//! A type that the console watches, and the part that the type plays.

use kaos_policy::contract::ResourceType;
use tokio_util::sync::CancellationToken;

use crate::watch::Served;

/// The part that a type plays on the pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Policies answer for the objects.
    Claimed,
    /// Policies emit the objects. The console watches only those that the operator made.
    Child,
    /// The records of policies.
    Record,
}

/// One watch.
#[derive(Debug, Clone)]
pub(super) struct WatchedType {
    pub(super) of: ResourceType,
    pub(super) served: Served,
    /// The namespace; `None` for the whole cluster.
    pub(super) place: Option<String>,
    pub(super) role: Role,
    /// Ends the watch. After the end, events of the watch have no effect.
    pub(super) stop: CancellationToken,
}
