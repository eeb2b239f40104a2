//! Hashes by which a pass tells whether something changed.

use kaos_policy::contract::Reference;

use crate::hashing::hash;

/// A hash that only has to differ.
pub(crate) type Mark = u64;

/// The mark of a child's identity.
pub(crate) fn child_mark(child: &Reference) -> Mark {
    hash((&child.api_version, &child.kind, &child.name))
}
