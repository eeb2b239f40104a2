//! Hashes that show a pass whether something changed.

use kaos_policy::contract::Reference;

use crate::hashing::hash;

/// A hash for comparison only.
pub(crate) type Mark = u64;

/// The mark of a child's identity.
pub(crate) fn child_mark(child: &Reference) -> Mark {
    hash((&child.api_version, &child.kind, &child.name))
}
