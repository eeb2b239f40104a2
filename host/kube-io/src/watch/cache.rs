//! The cached objects of one watch. The cache never replaces a newer version by an older version. Events, lists and
//! answers to writes may arrive in any order.
//!
//! - Event versions rise within a watch, so an event at or below the reached version is old.
//! - The cache keeps the answer to a write until the watch has passed the version in the answer.
//! - A list replaces everything up to its own version. The cache keeps newer objects, because the watch after the list
//!   reports these objects again. After a restore of the server's data from a backup, the versions are lower than
//!   before. So the cache keeps an object that the backup lacks, until the version of a list is above the object's
//!   version.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use tokio::time::Instant;

use super::{
    cached_object::{Arrived, CachedObject, Owner, owner_of},
    watch_error::WatchError,
};

/// Time during which the cache still answers after the API server begins to refuse reads. A starting server does not
/// know all Roles yet, and refuses reads for a short time. If lookups returned this refusal at once, policies would
/// change their plans, and pods would restart twice.
pub(super) const REFUSAL_GRACE: Duration = Duration::from_mins(1);

/// The reason why a watch does not work now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trouble {
    /// Whether the API server refuses the watch.
    pub(super) forbidden: bool,
    pub(super) text: String,
}

impl Trouble {
    /// Converts an error of a watch to the form that the cache stores.
    pub(super) fn of(broken: &WatchError) -> Self {
        Self { forbidden: broken.is_denial(), text: broken.to_string() }
    }
}

/// The cached objects of one watch.
#[derive(Debug, Default)]
pub(super) struct Cache {
    objects: BTreeMap<Arc<str>, BTreeMap<Arc<str>, CachedObject>>,
    /// UIDs of objects that the operator deleted, and whose deletion the watch has not reported yet.
    deleted: BTreeSet<Box<str>>,
    /// The version up to which the watch has reported everything.
    reached: u64,
    /// Whether the first list is complete.
    pub(super) synced: bool,
    pub(super) trouble: Option<Trouble>,
    /// The time since which the API server has refused reads. This field is set only after the first list.
    refused_since: Option<Instant>,
    /// Whether reads return the refusal instead of the cached objects.
    pub(super) withheld: bool,
}

/// A change of one object.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) namespace: Arc<str>,
    pub(super) name: Arc<str>,
    pub(super) before: Option<CachedObject>,
    pub(super) after: Option<CachedObject>,
}

impl Change {
    /// Returns whether anything except the version changed.
    pub(super) fn is_visible(&self) -> bool {
        let content = |item: &Option<CachedObject>| item.as_ref().map(|item| (item.content, item.uid.clone()));
        content(&self.before) != content(&self.after)
    }

    /// Returns whether anything except the status changed.
    pub(super) fn is_essential(&self) -> bool {
        let essence = |item: &Option<CachedObject>| item.as_ref().map(|item| (item.essence, item.uid.clone()));
        essence(&self.before) != essence(&self.after)
    }

    /// Returns the owners before and after the change. Returns one owner if both are the same.
    pub(super) fn owners(&self) -> Vec<Owner> {
        let owner = |item: &Option<CachedObject>| {
            let item = item.as_ref().filter(|item| item.owner.is_some())?;
            owner_of(&item.value())
        };
        let same = match (&self.before, &self.after) {
            (Some(before), Some(after)) => before.owner == after.owner,
            _ => false,
        };
        let mut owners: Vec<Owner> = owner(&self.after).into_iter().collect();
        if !same {
            owners.extend(owner(&self.before));
        }
        owners
    }
}

impl Cache {
    /// Records the error of a watch, or `None` when the watch works again. Returns whether reads give another result
    /// from now on. Before the first list, reads return a refusal (403 or 401) at once. After the first list, reads
    /// return a 403 only after some time. After the first list, reads never return a 401, because a 401 proves nothing
    /// about rights.
    pub(super) fn set_trouble(&mut self, broken: Option<&WatchError>, now: Instant) -> bool {
        self.trouble = broken.map(Trouble::of);
        let counts = self.synced && matches!(broken, Some(WatchError::Forbidden(_)));
        self.refused_since = counts.then(|| self.refused_since.unwrap_or(now));
        let lasts = self.refused_since.is_some_and(|since| now.duration_since(since) >= REFUSAL_GRACE);
        let withheld = if self.synced { lasts } else { self.is_refused() };
        std::mem::replace(&mut self.withheld, withheld) != withheld
    }

    /// Records that a complete list arrived. Returns whether reads returned a refusal until now.
    pub(super) fn heal(&mut self) -> bool {
        (self.trouble, self.refused_since) = (None, None);
        std::mem::take(&mut self.withheld)
    }

    /// Returns whether the API server refuses the watch.
    pub(super) fn is_refused(&self) -> bool {
        self.trouble.as_ref().is_some_and(|trouble| trouble.forbidden)
    }

    pub(super) fn get(&self, namespace: &str, name: &str) -> Option<&CachedObject> {
        self.objects.get(namespace)?.get(name)
    }

    /// Returns all objects, or the objects of one namespace, sorted by namespace and name.
    pub(super) fn iter<'a>(
        &'a self,
        namespace: Option<&'a str>,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a Arc<str>, &'a CachedObject)> {
        let one = namespace.and_then(|namespace| self.objects.get_key_value(namespace));
        let all = namespace.is_none().then_some(&self.objects).into_iter().flatten();
        one.into_iter().chain(all).flat_map(|(place, names)| names.iter().map(move |(name, item)| (place, name, item)))
    }

    /// Returns the version from which the watch continues.
    pub(super) fn reached(&self) -> u64 {
        self.reached
    }

    /// Applies an event for an added or modified object.
    pub(super) fn event(&mut self, arrived: Arrived) -> Option<Change> {
        if arrived.item.version <= self.reached {
            return None;
        }
        self.reached = arrived.item.version;
        self.put(arrived)
    }

    /// Applies an event for a deleted object.
    pub(super) fn gone(&mut self, arrived: &Arrived) -> Option<Change> {
        self.deleted.remove(&arrived.item.uid);
        if arrived.item.version <= self.reached {
            return None;
        }
        self.reached = arrived.item.version;
        let known = self.get(&arrived.namespace, &arrived.name)?;
        if known.version > arrived.item.version { None } else { self.take(&arrived.namespace, &arrived.name) }
    }

    /// Raises the reached version to the version of a bookmark.
    pub(super) fn bookmark(&mut self, version: u64) {
        self.reached = self.reached.max(version);
    }

    /// Stores the object that the API server returned for a write.
    pub(super) fn wrote(&mut self, arrived: Arrived) -> Option<Change> {
        if arrived.item.version <= self.reached { None } else { self.put(arrived) }
    }

    /// Removes an object after the operator deleted it. Does nothing if the cached object has another UID.
    pub(super) fn deleted(&mut self, namespace: &str, name: &str, uid: &str) -> Option<Change> {
        let known = self.get(namespace, name).filter(|known| *known.uid == *uid)?;
        self.deleted.insert(known.uid.clone());
        self.take(namespace, name)
    }

    /// Applies a complete list. `version` is the resource version of the list.
    pub(super) fn relist(&mut self, listed: Vec<Arrived>, version: u64) -> Vec<Change> {
        self.deleted.clear();
        self.reached = version;
        let mut vanished: BTreeSet<(Arc<str>, Arc<str>)> = self
            .iter(None)
            .filter(|(.., item)| item.version <= version)
            .map(|(namespace, name, _)| (Arc::clone(namespace), Arc::clone(name)))
            .collect();
        let mut changes = Vec::new();
        for arrived in listed {
            vanished.remove(&(Arc::clone(&arrived.namespace), Arc::clone(&arrived.name)));
            changes.extend(self.put(arrived));
        }
        changes.extend(vanished.into_iter().filter_map(|(namespace, name)| self.take(&namespace, &name)));
        changes
    }

    fn put(&mut self, arrived: Arrived) -> Option<Change> {
        let Arrived { namespace, name, item } = arrived;
        if self.deleted.contains(&item.uid) {
            return None;
        }
        let known = self.get(&namespace, &name);
        if known.is_some_and(|known| known.version >= item.version) {
            return None;
        }
        let after = Some(item.clone());
        let place = match self.objects.get_key_value(&namespace) {
            Some((place, _)) => Arc::clone(place),
            None => namespace,
        };
        let before = self.objects.entry(Arc::clone(&place)).or_default().insert(Arc::clone(&name), item);
        Some(Change { namespace: place, name, before, after })
    }

    fn take(&mut self, namespace: &str, name: &str) -> Option<Change> {
        let (place, names) = self.objects.get_key_value(namespace)?;
        let namespace = Arc::clone(place);
        let (name, _) = names.get_key_value(name)?;
        let name = Arc::clone(name);
        let names = self.objects.get_mut(&namespace)?;
        let before = names.remove(&name);
        if names.is_empty() {
            self.objects.remove(&namespace);
        }
        Some(Change { namespace, name, before, after: None })
    }
}

#[cfg(test)]
mod tests {
    use kaos_objects::ResourceType;
    use serde_json::json;

    use super::*;
    use crate::watch::cached_object::Extract;

    fn at(name: &str, uid: &str, version: u64) -> Arrived {
        let object = json!({"metadata": {"namespace": "t", "name": name, "uid": uid, "resourceVersion": version.to_string()},
            "at": version});
        Arrived::new(
            object,
            &ResourceType::new("x.io/v1", "Widget"),
            Extract { labels: true, essence: true, ..Extract::default() },
        )
        .unwrap()
    }

    fn version(cache: &Cache, name: &str) -> Option<u64> {
        cache.get("t", name).map(|item| item.version)
    }

    fn listed(items: Vec<Arrived>, version: u64) -> Cache {
        let mut cache = Cache::default();
        cache.relist(items, version);
        cache
    }

    #[test]
    fn known_objects_are_withheld_after_a_minute_of_refusals_without_a_break() {
        let (forbidden, unknown) =
            (WatchError::Forbidden("no".to_owned()), WatchError::Unauthenticated("who?".to_owned()));
        let start = Instant::now();
        let mut cache = listed(vec![at("a", "1", 5)], 5);
        cache.synced = true;
        let mut take = |seconds: u64, broken: Option<&WatchError>| {
            let turned = cache.set_trouble(broken, start + Duration::from_secs(seconds));
            (turned, cache.is_refused(), cache.withheld)
        };
        assert_eq!(take(0, Some(&forbidden)), (false, true, false));
        assert_eq!(take(59, Some(&forbidden)), (false, true, false));
        assert_eq!(take(60, Some(&WatchError::Silent)), (false, false, false));
        assert_eq!(take(61, Some(&forbidden)), (false, true, false));
        assert_eq!(take(110, Some(&unknown)), (false, true, false));
        assert_eq!(take(200, Some(&unknown)), (false, true, false));
        assert_eq!(take(201, Some(&forbidden)), (false, true, false));
        assert_eq!(take(261, Some(&forbidden)), (true, true, true));
        assert_eq!(take(300, Some(&forbidden)), (false, true, true));
        assert_eq!(take(301, None), (true, false, false));
    }

    #[test]
    fn unknown_objects_are_refused_at_once() {
        let mut cache = Cache::default();
        assert!(cache.set_trouble(Some(&WatchError::Forbidden("no".to_owned())), Instant::now()));
        assert!(cache.withheld);
        assert!(cache.heal() && !cache.withheld && !cache.is_refused());
    }

    #[test]
    fn duplicates_and_old_events_change_nothing() {
        let mut cache = listed(vec![at("a", "1", 5)], 5);
        assert!(cache.event(at("a", "1", 7)).is_some());
        for old in [7, 6, 5, 1] {
            assert!(cache.event(at("a", "1", old)).is_none(), "{old}");
        }
        assert_eq!(version(&cache, "a"), Some(7));
        assert!(cache.gone(&at("a", "1", 6)).is_none());
        assert!(cache.gone(&at("a", "1", 9)).is_some());
        assert!(cache.event(at("a", "1", 8)).is_none(), "an event from before the deletion brings nothing back");
    }

    #[test]
    fn an_answer_to_a_write_counts_until_the_watch_has_passed_it() {
        let mut cache = listed(vec![at("a", "1", 5)], 5);
        assert!(cache.wrote(at("a", "1", 8)).is_some());
        assert!(cache.event(at("a", "1", 6)).is_none(), "somebody's earlier change");
        assert!(cache.event(at("a", "1", 8)).is_none(), "our own");
        assert!(cache.gone(&at("a", "1", 10)).is_some());
        assert!(cache.wrote(at("a", "1", 9)).is_none(), "an answer that comes after the deletion was seen");
    }

    #[test]
    fn an_old_deletion_does_not_remove_a_newer_object() {
        let mut cache = listed(vec![at("a", "1", 5)], 5);
        cache.wrote(at("a", "2", 9));
        assert!(cache.gone(&at("a", "1", 8)).is_none());
        assert_eq!(version(&cache, "a"), Some(9));
    }

    #[test]
    fn an_object_that_the_operator_deleted_stays_gone_despite_older_events() {
        let mut cache = listed(vec![at("a", "1", 5)], 5);
        assert!(cache.deleted("t", "a", "2").is_none(), "another object of that name");
        assert!(cache.deleted("t", "a", "1").is_some());
        assert!(cache.event(at("a", "1", 6)).is_none());
        assert!(cache.event(at("a", "2", 8)).is_some(), "a new object of that name is another one");
    }

    #[test]
    fn a_list_removes_vanished_objects_and_keeps_newer_ones() {
        let mut cache = listed(vec![at("a", "1", 5), at("b", "2", 5), at("c", "3", 5)], 6);
        cache.wrote(at("new", "4", 20));
        cache.wrote(at("b", "2", 21));
        let changes = cache.relist(vec![at("a", "1", 9), at("b", "2", 5)], 15);
        let names: Vec<_> = changes.iter().map(|change| (&*change.name, change.after.is_some())).collect();
        assert_eq!(names, [("a", true), ("c", false)]);
        assert_eq!(version(&cache, "b"), Some(21));
        assert_eq!(version(&cache, "new"), Some(20));
    }

    #[test]
    fn after_a_stale_list_the_watch_tells_the_rest_again() {
        let mut cache = listed(vec![at("a", "1", 5)], 5);
        cache.event(at("b", "2", 8));
        cache.gone(&at("a", "1", 9));
        cache.relist(vec![at("a", "1", 5)], 6);
        assert_eq!(version(&cache, "b"), Some(8), "newer than the list");
        assert!(cache.event(at("b", "2", 8)).is_none());
        assert!(cache.gone(&at("a", "1", 9)).is_some());
        assert_eq!(cache.iter(None).count(), 1);
    }

    #[test]
    fn after_a_restored_backup_the_first_newer_list_removes_vanished_objects() {
        let mut cache = listed(vec![at("a", "1", 500)], 500);
        cache.relist(vec![], 100);
        assert_eq!(cache.iter(None).count(), 1);
        assert_eq!(cache.relist(vec![], 501).len(), 1);
    }
}
