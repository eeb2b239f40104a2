//! Objects that a caller already has, so that the reader need not read them again.

use std::sync::Arc;

use kaos_policy::contract::{ResourceType, Target};
use kube::core::Status;
use serde_json::Value;

use crate::watch::Served;

/// Objects that the caller already has, for example from watches. The reader looks for objects here before it sends a
/// request.
pub trait KnownObjects: Send + Sync {
    /// Returns the objects of a target. Returns `None` if the caller does not have all of them.
    fn find(&self, target: &Target) -> Option<Vec<Arc<Value>>>;

    /// Returns how the cluster serves a type, if the caller asked the cluster before.
    fn served(&self, of: &ResourceType) -> KnownType;

    /// Returns the known objects that the object with this UID owns.
    fn owned_by(&self, uid: &str) -> Vec<Arc<Value>>;

    /// Returns the result of an earlier read of a target, if the caller has a result that is new enough.
    fn remembered(&self, _target: &Target) -> Option<RememberedRead> {
        None
    }

    /// Called when the reader has learned how the cluster serves a type.
    fn learn(&self, _of: &ResourceType, _served: Option<&Served>) {}

    /// Called with the result of each read.
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

/// The way in which a cluster serves a type, if a caller knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KnownType {
    /// The cluster serves the type.
    Served(Served),
    /// The cluster does not serve the type.
    Unserved,
    /// The caller did not ask.
    Unasked,
}
