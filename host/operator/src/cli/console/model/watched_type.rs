//! A type that the console watches, and its role.

use kaos_policy::contract::ResourceType;
use tokio_util::sync::CancellationToken;

use crate::watch::Served;

/// The role of a type on the pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Policies answer for the objects.
    Claimed,
    /// Policies emit the objects. The console watches only the objects that the operator applied.
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
    /// Ends the watch. After its cancellation, events of the watch have no effect.
    pub(super) stop: CancellationToken,
}
