//! Hashes with which a pass detects changes.

use kaos_policy::contract::Reference;

use crate::hashing::hash;

/// A hash for comparison only.
pub(crate) type Mark = u64;

/// Returns the hash of a child's identity.
pub(crate) fn child_mark(child: &Reference) -> Mark {
    hash((&child.api_version, &child.kind, &child.name))
}
