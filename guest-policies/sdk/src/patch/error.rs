//! The mistakes that a patch can contain.

use super::here::Here;
use crate::Path;
use crate::types::{Refusal, Violation};
use alloc::string::{String, ToString};

/// A mistake in a patch, and its path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct Error {
    path: Path,
    problem: Problem,
}

/// The kinds of mistake.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The patch is not an object, or a list that merges by key has an item that is not an object.
    #[error("must be an object")]
    NotAnObject,
    /// A directive requires a list, but its value is not a list.
    #[error("must be a list")]
    NotAList,
    /// A list that merges by key has an item without the key.
    #[error("each item needs the field {0}, which identifies it")]
    NoMergeKey(&'static str),
    /// The policy's own manifest has an item without the merge key.
    #[error("cannot be merged: an item of the base list has no {0}")]
    BaseWithoutMergeKey(&'static str),
    /// The items of a list of plain values are of different types.
    #[error("all items must be of one type")]
    MixedItems,
    /// The value of `$patch` is unknown.
    #[error("$patch must be delete, merge or replace")]
    UnknownDirective,
    /// The patch sets two members that exclude each other.
    #[error("must not be set together with {0}; remove one of them")]
    NotBeside(String),
    /// A list contains an item with `$patch: merge`.
    #[error("$patch: merge is not possible in a list; name the item by its {0} instead")]
    MergeInList(&'static str),
    /// The patch sets a field that `$retainKeys` does not list.
    #[error("$retainKeys must list every field that is set here; {0} is missing")]
    NotRetained(String),
    /// `$setElementOrder` lacks items of the patch, or lists the items in another order.
    #[error("$setElementOrder must list every item of the patch, in the same order")]
    OrderMismatch,
}

impl Error {
    #[cold]
    #[inline(never)]
    pub(super) fn new(path: Here<'_>, problem: Problem) -> Self {
        Self { path: path.path(), problem }
    }

    /// Returns the path from the root of the patch.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the kind of mistake.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// Returns a refusal. `root` is the patch's path in the object, for example `spec.podSpec`.
    pub fn under(&self, root: &str) -> Refusal {
        let message = self.problem.to_string();
        Refusal::Invalid(vec![Violation { path: self.path.under(root).into(), message }])
    }
}
