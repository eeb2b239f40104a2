//! Finds a child before the pass writes it: in the watch, or by reading it from the API server.

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

/// The result of the operator's attempt to make a child match the plan.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Done {
    /// The child already matches the plan.
    Same,
    /// The operator wrote the child. Contains the reason, and the server's answer.
    Written(String, Value),
    /// The child belongs to another owner. Contains the name of this owner.
    Foreign(String),
    /// The child is being deleted.
    Going,
    /// The operator has not written the child, because an earlier operator created it and another client set its
    /// replicas. The object must first get an annotation.
    Scaled(Value),
}

/// The result of an operation on a child.
pub(crate) enum Made<T> {
    /// The operation is done.
    Done(T),
    /// The operation was not done, because the known child was replaced, changed or deleted. Contains the child that
    /// exists instead, if any.
    Found(Sight),
}

/// Evaluates to the result of an operation. If the operation found another child instead, the macro returns from the
/// calling function, so that the pass decides again.
macro_rules! found_is_news {
    ($made:expr) => {
        match $made {
            Made::Done(done) => done,
            Made::Found(found) => return Ok(Made::Found(found)),
        }
    };
}
pub(super) use found_is_news;

/// The knowledge of a pass about a child before the pass applies the child.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Sight {
    /// The watch does not show the child. A child of another owner may still exist, because the watch does not follow
    /// children of other owners.
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
    /// Whether `object` comes from a read of this pass, and so has its managed fields.
    pub(super) fresh: bool,
    /// Whether the watch shows that another field manager owns a part of the child's spec.
    pub(crate) shared: bool,
}

impl Sight {
    /// Wraps the result of a read.
    pub(crate) fn found(object: Option<Value>) -> Self {
        object.map_or(Self::Absent, |object| Self::There(Live { object, fresh: true, shared: false }))
    }

    /// Returns the live child; `None` if the operator did not find the child.
    pub(crate) fn live(&self) -> Option<&Value> {
        if let Self::There(live) = self { Some(&live.object) } else { None }
    }
}

/// Returns the state of a child from the watches.
pub(crate) fn sight(watch: &Watch, child: &Reference, uid: &str, memory: &ChildrenMemory) -> Sight {
    let namespace = child.namespace.as_deref().unwrap_or_default();
    if let Some(seen) = watch.live(&child.of(), namespace, &child.name)
        && let Some(object) = seen.object()
    {
        return Sight::There(Live { object, fresh: false, shared: seen.shared });
    }
    // After a conflict, the watch follows the object of another owner that has the child's name, until the name is
    // free.
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
