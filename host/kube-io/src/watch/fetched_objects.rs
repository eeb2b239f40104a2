//! Needed objects that the operator watches by metadata and reads one by one: all Secrets, and the ConfigMaps of a
//! namespace with too many needs. The operator stores nothing about objects that no object needs. Of a Secret, the
//! operator stores only the names of the keys and a digest.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kaos_objects::SecretFacts;

use super::cached_object::{Arrived, CachedObject};

/// The known state of one needed object.
#[derive(Debug, Clone)]
pub(super) enum Fetched {
    Absent,
    Object(CachedObject),
    Secret(SecretFacts),
    Forbidden(String),
}

impl Fetched {
    fn differs(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Absent, Self::Absent) => false,
            (Self::Object(one), Self::Object(other)) => one.content != other.content,
            (Self::Secret(one), Self::Secret(other)) => one != other,
            (Self::Forbidden(one), Self::Forbidden(other)) => one != other,
            _ => true,
        }
    }
}

/// The needed objects of one watch.
#[derive(Debug, Default)]
pub(super) struct FetchedObjects {
    known: BTreeMap<Arc<str>, (u64, Fetched)>,
    /// The objects to read, each with the minimum version that the read must return. The minimum is 0 if no version is
    /// known.
    dirty: BTreeMap<Arc<str>, u64>,
}

impl FetchedObjects {
    pub(super) fn get(&self, name: &str) -> Option<&Fetched> {
        self.known.get(name).map(|(_, answer)| answer)
    }

    /// Removes and returns the next object to read, with the minimum version that the read must return.
    pub(super) fn take(&mut self) -> Option<(Arc<str>, u64)> {
        self.dirty.pop_first()
    }

    /// Returns whether an object was read or is known to be absent.
    pub(super) fn is_known(&self, name: &str) -> bool {
        matches!(self.get(name), Some(Fetched::Absent | Fetched::Object(_) | Fetched::Secret(_)))
    }

    /// Returns whether this version of an object, or a later one, was read.
    pub(super) fn has(&self, name: &str, version: u64) -> bool {
        self.known.get(name).is_some_and(|(known, answer)| *known >= version && matches!(answer, Fetched::Object(_)))
    }

    /// Schedules another read after a failure, unless the content of the object is known now.
    pub(super) fn read_again(&mut self, name: &Arc<str>, version: u64) {
        if version > 0 || !self.is_known(name) {
            self.version(name, version);
        }
    }

    /// Records a version of an object that may be new. Returns whether a read was scheduled.
    pub(super) fn version(&mut self, name: &Arc<str>, version: u64) -> bool {
        let known = self.known.get(name);
        if known.is_some_and(|(known, answer)| *known >= version && !matches!(answer, Fetched::Forbidden(_))) {
            return false;
        }
        let wanted = self.dirty.get(name).copied();
        self.dirty.insert(Arc::clone(name), version.max(wanted.unwrap_or_default()));
        wanted.is_none()
    }

    /// Records the deletion of an object at a version. Returns whether the known state changed.
    pub(super) fn gone(&mut self, name: &Arc<str>, version: u64) -> bool {
        if self.known.get(name).is_some_and(|(known, _)| *known > version) {
            return false;
        }
        self.dirty.remove(name);
        self.put(name, version, Fetched::Absent)
    }

    /// Records the answer to a read. Returns whether the known state changed.
    pub(super) fn fetched(&mut self, name: &Arc<str>, version: u64, answer: Fetched) -> bool {
        // Version 0 means an answer without a version: the object does not exist, or the operator has no right to read
        // the object.
        if version > 0 && self.known.get(name).is_some_and(|(known, _)| *known > version) {
            return false;
        }
        let kept = self.known.get(name).map_or(0, |(known, _)| *known);
        self.put(name, version.max(kept), answer)
    }

    /// Records that an object is needed now.
    pub(super) fn want(&mut self, name: &str) {
        if !self.known.contains_key(name) {
            self.dirty.entry(name.into()).or_default();
        }
    }

    /// Returns whether an object still has to be read.
    #[cfg(test)]
    pub(super) fn is_to_be_read(&self, name: &str) -> bool {
        self.dirty.contains_key(name)
    }

    /// Forgets an object that is no longer needed.
    pub(super) fn forget(&mut self, name: &str) {
        self.known.remove(name);
        self.dirty.remove(name);
    }

    /// Applies a list. `version` is the resource version of the list. Returns the needed objects that are missing from
    /// the list and whose known state changed.
    pub(super) fn relist(&mut self, listed: &[Arrived], version: u64, needed: &BTreeSet<Arc<str>>) -> Vec<Arc<str>> {
        let mut absent = needed.clone();
        for arrived in listed {
            if absent.remove(&arrived.name) {
                // The object was absent, but this list is newer and contains it. So the next version makes the operator
                // read the object again.
                if let Some((known, Fetched::Absent)) = self.known.get_mut(&arrived.name)
                    && *known <= version
                {
                    *known = 0;
                }
                self.version(&arrived.name, arrived.item.version);
            }
        }
        absent.into_iter().filter(|name| self.gone(name, version)).collect()
    }

    fn put(&mut self, name: &Arc<str>, version: u64, answer: Fetched) -> bool {
        let before = self.known.insert(Arc::clone(name), (version, answer));
        let after = self.known.get(name);
        match (before, after) {
            (Some((_, before)), Some((_, after))) => before.differs(after),
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::secret_metadata::secret_facts, *};

    fn secret(version: u64, value: &str) -> (u64, Fetched) {
        (version, Fetched::Secret(secret_facts(&json!({"data": {"b": value, "a": ""}}), b"key")))
    }

    #[test]
    fn a_read_that_was_under_way_when_the_object_went_brings_it_not_back() {
        let name: Arc<str> = "s".into();
        let mut facts = FetchedObjects::default();
        assert!(facts.version(&name, 5));
        assert_eq!(facts.take(), Some((Arc::clone(&name), 5)));
        assert!(facts.gone(&name, 7));
        let (version, answer) = secret(5, "x");
        assert!(!facts.fetched(&name, version, answer));
        assert!(matches!(facts.get("s"), Some(Fetched::Absent)));
    }

    #[test]
    fn an_equal_answer_is_no_change() {
        let name: Arc<str> = "s".into();
        let mut facts = FetchedObjects::default();
        let mut fetch = |version, value: &str| {
            let (version, answer) = secret(version, value);
            facts.fetched(&name, version, answer)
        };
        assert!(fetch(1, "x"));
        assert!(!fetch(2, "x"));
        assert!(fetch(3, "y"));
    }

    #[test]
    fn a_list_determines_the_absent_objects_and_the_objects_to_read() {
        let needed: BTreeSet<Arc<str>> = ["a".into(), "b".into()].into();
        let mut facts = FetchedObjects::default();
        facts.fetched(&"b".into(), 3, secret(3, "x").1);
        let changed = facts.relist(&[], 9, &needed);
        assert_eq!(changed.len(), 2);
        assert!(facts.take().is_none());
    }
    #[test]
    fn the_next_list_restores_objects_that_an_incomplete_list_removed() {
        let needed: BTreeSet<Arc<str>> = ["a".into()].into();
        let object = json!({"metadata": {"name": "a", "uid": "u", "resourceVersion": "3"}});
        let of = kaos_objects::ResourceType::new("v1", "Secret");
        let listed = [Arrived::new(object, &of, crate::watch::cached_object::Extract::default()).unwrap()];
        let mut facts = FetchedObjects::default();
        facts.relist(&[], 9, &needed);
        facts.relist(&listed, 12, &needed);
        assert_eq!(facts.take(), Some(("a".into(), 3)));
        assert!(facts.fetched(&"a".into(), 3, secret(3, "x").1));
    }
}
