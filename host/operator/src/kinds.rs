//! Kinds that are served wherever an operator works: those of its own definitions, and Secrets, which it has a flag for.
//!
//! A policy that writes one of them in other capitals means none. Nothing would ever be of its kind, but who asks about an
//! `agent` could not be told which of the two is meant, and rights are named by plurals, which are the same for both.

use std::sync::LazyLock;

use kaos_crds::{API_VERSION, manifests};
use kaos_policy::contract::ResourceType;

/// All of them.
pub(crate) static SERVED: LazyLock<Vec<ResourceType>> = LazyLock::new(|| {
    let own = manifests::KINDS.map(|kind| ResourceType::new(API_VERSION, kind));
    own.into_iter().chain([ResourceType::new("v1", "Secret")]).collect()
});
