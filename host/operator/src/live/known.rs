//! Objects that a caller already has, so that the reader need not read them again.

use std::sync::Arc;

use kaos_policy::contract::{ResourceType, Target};
use kube::core::Status;
use serde_json::Value;

use crate::watch::Served;

/// Objects that the caller already has, for example from watches. The reader uses these objects instead of sending a
/// request.
pub trait KnownObjects: Send + Sync {
    /// Returns all objects of a target. Returns `None` if the caller does not have all of them.
    fn find(&self, target: &Target) -> Option<Vec<Arc<Value>>>;

    /// Returns whether and how the cluster serves a type, if the caller has asked the cluster.
    fn served(&self, of: &ResourceType) -> KnownType;

    /// Returns the known objects that the object with this UID owns.
    fn owned_by(&self, uid: &str) -> Vec<Arc<Value>>;

    /// Returns the result of an earlier read of a target, if this read is recent enough.
    fn remembered(&self, _target: &Target) -> Option<RememberedRead> {
        None
    }

    /// Stores whether and how the cluster serves a type. The reader calls this after it has asked the cluster.
    fn learn(&self, _of: &ResourceType, _served: Option<&Served>) {}

    /// Stores the result of a read of a target. The reader calls this after each read from the cluster.
    fn remember(&self, _target: &Target, _read: RememberedRead) {}
}

/// The result of a read of a target.
#[derive(Debug, Clone)]
pub enum RememberedRead {
    /// The objects that the cluster has.
    Found(Vec<Arc<Value>>),
    /// The user lacks the right to read the target.
    Refused(Box<Status>),
}

/// Whether and how the cluster serves a type, as far as the caller has asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KnownType {
    /// The cluster serves the type.
    Served(Served),
    /// The cluster does not serve the type.
    Unserved,
    /// The caller did not ask.
    Unasked,
}
