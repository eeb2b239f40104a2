//! Counts objects by namespace and kind, so that no page has to look at every object.

use std::collections::BTreeMap;

use crate::input::Identity;

/// The objects of a kind in a namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::cli::console) struct GroupKey {
    /// The namespace. Empty for cluster-scoped objects.
    pub(in crate::cli::console) namespace: String,
    pub(in crate::cli::console) kind: String,
}

impl GroupKey {
    /// Returns the group of an object.
    pub(in crate::cli::console) fn of(identity: &Identity) -> Self {
        Self { namespace: identity.namespace.clone().unwrap_or_default(), kind: identity.kind.clone() }
    }
}

/// The number of objects in a group, and how many of them are not ready.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::cli::console) struct Count {
    /// The number of objects that are not ready.
    pub(in crate::cli::console) open: usize,
    pub(in crate::cli::console) total: usize,
}

impl Count {
    /// Adds the numbers of another count.
    pub(in crate::cli::console) fn add(&mut self, Self { open, total }: Self) {
        self.open += open;
        self.total += total;
    }

    /// Counts one more object.
    pub(in crate::cli::console) fn add_one(&mut self, is_open: bool) {
        self.add(Self { open: usize::from(is_open), total: 1 });
    }
}

/// The numbers of objects, by namespace and kind.
#[derive(Debug, Default)]
pub(super) struct Counts(BTreeMap<GroupKey, Count>);

impl Counts {
    pub(super) fn add(&mut self, identity: &Identity, is_open: bool) {
        self.0.entry(GroupKey::of(identity)).or_default().add_one(is_open);
    }

    pub(super) fn remove(&mut self, identity: &Identity, is_open: bool) {
        let key = GroupKey::of(identity);
        if let Some(count) = self.0.get_mut(&key) {
            count.total -= 1;
            count.open -= usize::from(is_open);
            if count.total == 0 {
                self.0.remove(&key);
            }
        }
    }

    /// Returns each group with the numbers of its objects.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&GroupKey, Count)> {
        self.0.iter().map(|(key, count)| (key, *count))
    }
}
