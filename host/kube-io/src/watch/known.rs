//! The CustomResourceDefinitions that the watch has seen.

use std::{collections::BTreeMap, sync::Arc};

use super::cached_object::CachedObject;
use crate::hashing::hash;

/// The known CustomResourceDefinitions by name. The name of each definition is `<plural>.<group>`.
#[derive(Debug, Default)]
pub(super) struct KnownDefinitions {
    pub(super) by_name: BTreeMap<Arc<str>, Definition>,
    /// The version that the watch has reached.
    pub(super) reached: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Definition {
    pub(super) version: u64,
    /// A number that changes when the UID or the generation of the CustomResourceDefinition changes.
    pub(super) content: u64,
}

impl Definition {
    pub(super) fn of(item: &CachedObject) -> Self {
        let content = hash((&item.uid, item.value()["metadata"]["generation"].as_i64()));
        Self { version: item.version, content }
    }
}

impl KnownDefinitions {
    /// Returns whether the watch knows a CustomResourceDefinition of an API group.
    pub(super) fn has_group(&self, group: &str) -> bool {
        self.by_name.keys().any(|name| group_of(name) == group)
    }
}

pub(super) fn group_of(name: &str) -> &str {
    name.split_once('.').map_or("", |(_, group)| group)
}
