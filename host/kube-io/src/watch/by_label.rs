//! An index of objects by label.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    cached_object::{Arrived, CachedObject},
    known_labels::mark,
};

/// An index of objects by label. The index stores eight bytes for each label of an object. The index lists objects only
/// for the labels that a selector names. If two labels have the same hash, the only effect is that the operator
/// needlessly reads an object.
#[derive(Debug, Default)]
pub(super) struct ByLabel {
    pub(super) of_name: BTreeMap<Arc<str>, Labelled>,
    /// For each label that a selector names, the objects with this label.
    pub(super) names: BTreeMap<u64, BTreeSet<Arc<str>>>,
    /// For tests: how often the index checked whether a selector selects an object.
    #[cfg(test)]
    pub(super) decided: std::sync::atomic::AtomicUsize,
}

#[derive(Debug)]
pub(super) struct Labelled {
    pub(super) version: u64,
    /// The hashes of the labels, sorted.
    pub(super) labels: Box<[u64]>,
}

pub(super) type Labels = [(String, String)];

pub(super) fn marks(labels: &Labels) -> Vec<u64> {
    labels.iter().map(|(key, value)| mark(key, value)).collect()
}

impl ByLabel {
    /// Records the labels of a version of an object. Returns whether this version is newer than the version in the
    /// index.
    pub(super) fn put(&mut self, name: &Arc<str>, item: &CachedObject) -> bool {
        if self.of_name.get(name).is_some_and(|known| known.version >= item.version) {
            return false;
        }
        self.take(name);
        let labels = item.labels.marks();
        for label in &labels {
            if let Some(names) = self.names.get_mut(label) {
                names.insert(Arc::clone(name));
            }
        }
        self.of_name.insert(Arc::clone(name), Labelled { version: item.version, labels });
        true
    }

    /// Removes an object that was deleted at a version. Returns whether this version is newer than the version in the
    /// index.
    pub(super) fn gone(&mut self, name: &str, version: u64) -> bool {
        let is_newer = self.of_name.get(name).is_none_or(|known| known.version <= version);
        if is_newer {
            self.take(name);
        }
        is_newer
    }

    pub(super) fn take(&mut self, name: &str) {
        let labels = self.of_name.remove(name).map(|known| known.labels).unwrap_or_default();
        for label in labels {
            if let Some(names) = self.names.get_mut(&label) {
                names.remove(name);
            }
        }
    }

    /// Builds the index for the labels that selectors name.
    pub(super) fn index(&mut self, named: &BTreeSet<u64>) {
        self.names.retain(|label, _| named.contains(label));
        let mut new: BTreeMap<u64, BTreeSet<Arc<str>>> = BTreeMap::new();
        for label in named.iter().filter(|label| !self.names.contains_key(label)) {
            new.insert(*label, BTreeSet::new());
        }
        if new.is_empty() {
            return;
        }
        for (name, known) in &self.of_name {
            for label in &known.labels {
                if let Some(names) = new.get_mut(label) {
                    names.insert(Arc::clone(name));
                }
            }
        }
        self.names.append(&mut new);
    }

    /// Returns the known objects that were deleted before this list: they are missing from the list, and the list is
    /// not older than their last known version.
    pub(super) fn vanished(&self, listed: &[Arrived], version: u64) -> Vec<Arc<str>> {
        let listed: BTreeSet<&str> = listed.iter().map(|arrived| &*arrived.name).collect();
        let vanished = |(name, known): &(&Arc<str>, &Labelled)| known.version <= version && !listed.contains(&***name);
        self.of_name.iter().filter(vanished).map(|(name, _)| Arc::clone(name)).collect()
    }

    /// Returns whether an object has all these labels.
    pub(super) fn carries(&self, name: &str, labels: &Labels) -> bool {
        self.has(name, &marks(labels))
    }

    /// Returns whether one of these selectors selects an object. A selector is a list of hashes of labels.
    pub(super) fn is_selected(&self, name: &str, selectors: &[Vec<u64>]) -> bool {
        #[cfg(test)]
        self.decided.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        selectors.iter().any(|marks| self.has(name, marks))
    }

    pub(super) fn has(&self, name: &str, marks: &[u64]) -> bool {
        self.of_name.get(name).is_some_and(|known| marks.iter().all(|mark| known.labels.binary_search(mark).is_ok()))
    }

    /// Returns the objects with all these labels, sorted by name.
    pub(super) fn matching(&self, labels: &Labels) -> Vec<Arc<str>> {
        let marks = marks(labels);
        let mut fewest: Option<&BTreeSet<Arc<str>>> = None;
        for mark in &marks {
            let Some(names) = self.names.get(mark) else { continue };
            if fewest.is_none_or(|fewest| names.len() < fewest.len()) {
                fewest = Some(names);
            }
        }
        match fewest {
            Some(names) => names.iter().filter(|name| self.has(name, &marks)).cloned().collect(),
            None => self.of_name.keys().filter(|name| self.has(name, &marks)).cloned().collect(),
        }
    }
}
