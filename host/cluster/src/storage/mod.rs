//! Stores objects, and keeps the log of changes for watches. All objects share one revision counter.
//!
//! All maps are ordered, so that two runs with the same requests produce the same bytes. The store does not validate
//! objects: the callers of the store validate them.

mod object_id;
mod owners;
mod parse;
mod requirement;
mod selector;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use serde_json::{Value, json};

pub(crate) use object_id::{GroupResource, Key, ObjectId, key_of, meta, revision_of};
use owners::Owners;
pub(crate) use owners::{controller, owners};
pub(crate) use selector::{FieldSelector, LabelSelector};

use crate::signal;

/// An entry in the log of changes.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub(crate) revision: u64,
    pub(crate) before: Option<Arc<Value>>,
    /// The object after the change. After a deletion, this is the object's last state, with the revision of the
    /// deletion.
    pub(crate) after: Arc<Value>,
    pub(crate) deleted: bool,
}

#[derive(Debug, Default)]
struct Table {
    objects: BTreeMap<Key, Arc<Value>>,
    log: VecDeque<Change>,
    /// The newest revision from which no watch can start any more.
    compacted: u64,
}

/// The error for a revision that the log no longer contains.
#[derive(Debug)]
pub(crate) struct Expired {
    pub(crate) oldest: u64,
}

/// Stores all objects.
#[derive(Debug)]
pub(crate) struct Store {
    revision: u64,
    tables: BTreeMap<GroupResource, Table>,
    owners: Owners,
    window: usize,
    touched: VecDeque<(ObjectId, Change)>,
    changed: signal::Sender,
}

impl Store {
    /// Returns an empty store. The log of the store keeps `window` changes of each type.
    pub(crate) fn new(window: usize) -> Self {
        Self {
            revision: 1,
            tables: BTreeMap::new(),
            owners: Owners::default(),
            window,
            touched: VecDeque::new(),
            changed: signal::Sender::default(),
        }
    }

    /// Returns the revision of the last write.
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// Returns a receiver that signals new revisions.
    pub(crate) fn subscribe(&self) -> signal::Receiver {
        self.changed.subscribe()
    }

    pub(crate) fn get(&self, resource: &GroupResource, key: &Key) -> Option<&Arc<Value>> {
        self.tables.get(resource)?.objects.get(key)
    }

    /// Returns the objects of a type, sorted by namespace and name. An empty namespace means all namespaces.
    pub(crate) fn list<'a>(
        &'a self,
        resource: &GroupResource,
        namespace: &'a str,
    ) -> impl Iterator<Item = (&'a Key, &'a Arc<Value>)> + use<'a> {
        let start = Key::new(namespace, "");
        let objects = self.tables.get(resource).map(|table| table.objects.range(start..));
        objects.into_iter().flatten().take_while(move |(key, _)| namespace.is_empty() || key.namespace == namespace)
    }

    /// Returns the number of objects of a type.
    pub(crate) fn count(&self, resource: &GroupResource) -> usize {
        self.tables.get(resource).map_or(0, |table| table.objects.len())
    }

    /// Returns the types that have objects.
    pub(crate) fn resources(&self) -> Vec<GroupResource> {
        self.tables
            .iter()
            .filter(|(_, table)| !table.objects.is_empty())
            .map(|(resource, _)| resource.clone())
            .collect()
    }

    /// Stores an object with the next revision, and sets the revision in its metadata.
    pub(crate) fn put(&mut self, resource: &GroupResource, key: &Key, mut object: Value) -> Arc<Value> {
        self.revision += 1;
        object["metadata"]["resourceVersion"] = json!(self.revision.to_string());
        let object = Arc::new(object);
        let place = ObjectId { resource: resource.clone(), key: key.clone() };
        let table = self.tables.entry(resource.clone()).or_default();
        let before = table.objects.insert(key.clone(), Arc::clone(&object));
        self.owners.replace(&place, before.as_deref(), Some(&object));
        self.record(place, Change { revision: self.revision, before, after: Arc::clone(&object), deleted: false });
        object
    }

    /// Removes an object.
    pub(crate) fn remove(&mut self, resource: &GroupResource, key: &Key) -> Option<Arc<Value>> {
        let before = self.tables.get_mut(resource)?.objects.remove(key)?;
        self.revision += 1;
        let mut after = (*before).clone();
        after["metadata"]["resourceVersion"] = json!(self.revision.to_string());
        let after = Arc::new(after);
        let place = ObjectId { resource: resource.clone(), key: key.clone() };
        self.owners.replace(&place, Some(&before), None);
        self.record(
            place,
            Change { revision: self.revision, before: Some(before), after: Arc::clone(&after), deleted: true },
        );
        Some(after)
    }

    fn record(&mut self, place: ObjectId, change: Change) {
        let table = self.tables.entry(place.resource.clone()).or_default();
        table.log.push_back(change.clone());
        while table.log.len() > self.window {
            table.compacted = table.log.pop_front().map_or(table.compacted, |oldest| oldest.revision);
        }
        self.touched.push_back((place, change));
        self.changed.raise(self.revision);
    }

    /// Returns the changes of a type since a revision.
    pub(crate) fn since(
        &self,
        resource: &GroupResource,
        revision: u64,
    ) -> Result<impl Iterator<Item = &Change>, Expired> {
        let table = self.tables.get(resource);
        let oldest = table.map_or(0, |table| table.compacted);
        if revision < oldest {
            return Err(Expired { oldest });
        }
        let log = table.map(|table| &table.log);
        let first = log.map_or(0, |log| log.partition_point(|change| change.revision <= revision));
        Ok(log.into_iter().flat_map(move |log| log.range(first..)))
    }

    /// Returns the objects of a type in their state before the last `back` changes. If the log has fewer changes,
    /// returns the state before the first change in the log.
    pub(crate) fn earlier(&self, resource: &GroupResource, namespace: &str, back: u64) -> Vec<(Key, Arc<Value>)> {
        let mut objects: BTreeMap<Key, Arc<Value>> =
            self.list(resource, namespace).map(|(key, object)| (key.clone(), Arc::clone(object))).collect();
        let back = usize::try_from(back).unwrap_or(usize::MAX);
        let log = self.tables.get(resource).map(|table| table.log.iter().rev().take(back));
        for change in log.into_iter().flatten() {
            let key = key_of(&change.after);
            if !namespace.is_empty() && key.namespace != namespace {
                continue;
            }
            match &change.before {
                Some(before) => objects.insert(key, Arc::clone(before)),
                None => objects.remove(&key),
            };
        }
        objects.into_iter().collect()
    }

    /// Returns the revision before the last `back` changes of a type.
    pub(crate) fn earlier_revision(&self, resource: &GroupResource, back: u64) -> u64 {
        let Some(table) = self.tables.get(resource).filter(|_| back > 0) else { return self.revision };
        let back = usize::try_from(back).unwrap_or(usize::MAX).min(table.log.len());
        match table.log.len().checked_sub(back + 1) {
            Some(last) => table.log[last].revision,
            None => table.compacted.max(1),
        }
    }

    /// Clears the log. After this call, every watch from an older revision gets 410.
    pub(crate) fn compact(&mut self) {
        for table in self.tables.values_mut() {
            table.log.clear();
            table.compacted = self.revision;
        }
    }

    /// Returns the changes since the last call, for the controllers.
    pub(crate) fn take_touched(&mut self) -> Vec<(ObjectId, Change)> {
        self.touched.drain(..).collect()
    }

    /// Returns the object with this UID, or `None` if it does not exist.
    pub(crate) fn by_uid(&self, uid: &str) -> Option<(&ObjectId, &Arc<Value>)> {
        let place = self.owners.place(uid)?;
        Some((place, self.get(&place.resource, &place.key)?))
    }

    /// Returns the pods or `ReplicaSet`s without a controller in a namespace.
    pub(crate) fn uncontrolled<'a>(
        &'a self,
        resource: &'a GroupResource,
        namespace: &'a str,
    ) -> impl Iterator<Item = (&'a Key, &'a Arc<Value>)> {
        let places = self.owners.free();
        let here = places.filter(move |place| place.resource == *resource && place.key.namespace == namespace);
        here.filter_map(|place| Some((&place.key, self.get(resource, &place.key)?)))
    }

    /// Returns the objects that name a UID as an owner.
    pub(crate) fn dependents(&self, uid: &str) -> Vec<ObjectId> {
        self.owners.dependents(uid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compacted_log_expires_only_older_revisions() {
        let mut store = Store::new(2);
        let resource = GroupResource::new("", "configmaps");
        for name in ["a", "b", "c"] {
            store.put(&resource, &Key::new("n", name), json!({"metadata": {"name": name}}));
        }
        assert!(store.since(&resource, 1).is_err());
        assert_eq!(store.since(&resource, 2).unwrap().count(), 2);
        store.compact();
        assert!(store.since(&resource, 3).is_err());
        assert_eq!(store.since(&resource, store.revision()).unwrap().count(), 0);
    }

    #[test]
    fn objects_are_serialized_in_the_order_of_their_keys() {
        let value: Value = serde_json::from_str(r#"{"b":1,"a":{"d":1,"c":2}}"#).unwrap();
        assert_eq!(value.to_string(), r#"{"a":{"c":2,"d":1},"b":1}"#);
    }

    #[test]
    fn a_deleted_object_carries_the_revision_of_its_deletion() {
        let mut store = Store::new(10);
        let resource = GroupResource::new("", "configmaps");
        let key = Key::new("n", "a");
        store.put(&resource, &key, json!({"metadata": {"name": "a", "uid": "u"}}));
        assert!(store.by_uid("u").is_some());
        let gone = store.remove(&resource, &key).unwrap();
        assert_eq!(meta(&gone, "resourceVersion"), "3");
        assert!(store.by_uid("u").is_none());
    }
}
