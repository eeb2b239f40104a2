//! Hashes without a seed: equal for equal values, in every process of one build.

use std::hash::{DefaultHasher, Hash, Hasher as _};

/// The hash of a value.
pub(crate) fn hash(of: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}
