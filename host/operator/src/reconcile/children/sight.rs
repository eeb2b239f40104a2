//! The pass's knowledge of a child before it writes the child, from the watch or from a read.

use kaos_policy::contract::Reference;
use serde_json::Value;

use crate::{
    reconcile::{
        access::Access,
        children::decide::{Owner, owner},
        children::memory::ChildrenMemory,
        error::CallError,
    },
    watch::Watch,
};

/// Result of handling a child.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Done {
    /// Nothing to do.
    Same,
    /// The operator wrote the child, for this reason. Holds the server's answer.
    Written(String, Value),
    /// The child belongs to another owner, named here.
    Foreign(String),
    /// The child is being deleted.
    Going,
    /// Nothing yet: a child of an earlier operator has a number of replicas that another writer set.
    Scaled(Value),
}

/// Result of an operation on a child.
pub(crate) enum Made<T> {
    /// The operation is done.
    Done(T),
    /// Nothing was done: the cluster has this instead of the known child.
    Found(Sight),
}

/// Returns the result of an operation. If the operation found another child instead, returns from the calling function,
/// so that the pass decides again.
macro_rules! found_is_news {
    ($made:expr) => {
        match $made {
            Made::Done(done) => done,
            Made::Found(found) => return Ok(Made::Found(found)),
        }
    };
}
pub(super) use found_is_news;

/// The pass's knowledge of a child before it applies the child.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Sight {
    /// The watch knows no such child. It does not follow children of other owners, so one of those may exist.
    Unknown,
    /// A read found no child.
    Absent,
    /// The child exists.
    There(Live),
}

/// An existing child.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Live {
    pub(crate) object: Value,
    /// Whether the pass read it just now, with its managed fields.
    pub(super) fresh: bool,
    /// Whether another field manager is known to own a part of its spec.
    pub(crate) shared: bool,
}

impl Sight {
    /// Wraps the result of a read.
    pub(crate) fn found(object: Option<Value>) -> Self {
        object.map_or(Self::Absent, |object| Self::There(Live { object, fresh: true, shared: false }))
    }

    /// Returns the child's object, if the child is known to exist.
    pub(crate) fn live(&self) -> Option<&Value> {
        if let Self::There(live) = self { Some(&live.object) } else { None }
    }
}

/// Returns the child from the watches.
pub(crate) fn sight(watch: &Watch, child: &Reference, uid: &str, memory: &ChildrenMemory) -> Sight {
    let namespace = child.namespace.as_deref().unwrap_or_default();
    if let Some(seen) = watch.live(&child.of(), namespace, &child.name)
        && let Some(object) = seen.object()
    {
        return Sight::There(Live { object, fresh: false, shared: seen.shared });
    }
    // The watch follows a name that another owner has, until the name is free.
    if memory.conflicts.contains(child)
        && let Some(object) = watch.rival(child)
        && matches!(owner(&object, uid), Owner::Other(_))
    {
        return Sight::There(Live { object, fresh: false, shared: false });
    }
    Sight::Unknown
}

/// Reads the child from the API server.
pub(crate) async fn read(access: &Access, child: &Reference) -> Result<Sight, CallError> {
    access.read(child).await.map(Sight::found)
}
