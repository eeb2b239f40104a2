//! Hashes without a random seed: equal values have equal hashes in every process of one build.

use std::hash::{DefaultHasher, Hash, Hasher as _};

/// Returns the hash of a value.
pub fn hash(of: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}
