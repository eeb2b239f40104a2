//! Records the reports of the watches: objects, missing rights, and failures of watches.

use std::collections::{BTreeMap, BTreeSet};

use kaos_policy::contract::ResourceType;
use serde_json::Value;

use super::{
    objects::identity_of,
    open_pages::Change,
    places::{Place, Places},
    state::Model,
    watched_type::{Role, WatchedType},
};
use crate::{
    cli::health::{MissingRight, resource},
    input::Identity,
    live::KnownType,
    locking::lock,
};

/// The types and namespaces that the user cannot see, for a note on each page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::cli::console) struct Limits {
    pub(in crate::cli::console) places: Places,
    /// Rights that the user lacks in the shown namespaces.
    pub(in crate::cli::console) missing: Vec<MissingRight>,
    /// Watches that fail, each with the reason.
    pub(in crate::cli::console) broken: Vec<String>,
    /// Why the console could read only the default policies.
    pub(in crate::cli::console) policies: Option<String>,
}

impl Model {
    /// Ends the watches of each type that `wanted` does not contain, or contains with another role. Forgets the objects
    /// of these types. Returns the types that the console does not watch yet.
    pub(super) fn end_watches(&self, wanted: BTreeMap<ResourceType, Role>) -> Vec<(ResourceType, Role)> {
        let mut reports = lock(&self.reports);
        let running: Vec<ResourceType> = reports
            .running
            .iter()
            .filter(|(of, (role, _))| wanted.get(*of) != Some(role))
            .map(|(of, _)| of.clone())
            .collect();
        for of in &running {
            // Lock the objects, so that no event of these watches arrives after the console forgot the objects.
            let mut objects = self.lock();
            if let Some(stop) = reports.end(of) {
                stop.cancel();
            }
            objects.forget(of);
        }
        let new = wanted.into_iter().filter(|(of, _)| !reports.running.contains_key(of)).collect();
        drop(reports);
        if !running.is_empty() {
            self.tell_all();
        }
        new
    }

    /// Records that watches of a type start. Returns the watches.
    pub(super) fn begin_watches(&self, watched: &WatchedType, places: Vec<Place>) -> Vec<WatchedType> {
        let WatchedType { of, role, stop, .. } = watched;
        let mut reports = lock(&self.reports);
        reports.running.insert(of.clone(), (*role, stop.clone()));
        if *role == Role::Claimed {
            reports.listing.extend(places.iter().map(|place| (of.clone(), place.clone())));
        }
        places.into_iter().map(|place| WatchedType { place, ..watched.clone() }).collect()
    }

    /// Records an object. Returns the identity of the object; `None` if the watch has ended.
    pub(super) fn put(&self, watched: &WatchedType, object: Value) -> Option<Identity> {
        let identity = identity_of(&object);
        let mut objects = self.lock();
        if watched.stop.is_cancelled() {
            return None;
        }
        let change = objects.put(identity.clone(), object, watched.role == Role::Claimed);
        drop(objects);
        self.changed(watched, change.into_iter().collect());
        Some(identity)
    }

    /// Removes an object.
    pub(super) fn remove(&self, watched: &WatchedType, object: &Value) {
        let mut objects = self.lock();
        if watched.stop.is_cancelled() {
            return;
        }
        let change = objects.remove(&identity_of(object));
        drop(objects);
        self.changed(watched, change.into_iter().collect());
    }

    /// Processes the end of a list: removes the objects that the list did not contain.
    pub(super) fn listed(&self, watched: &WatchedType, listed: &BTreeSet<Identity>) {
        let WatchedType { of, place, role, stop, .. } = watched;
        let mut objects = self.lock();
        if stop.is_cancelled() {
            return;
        }
        let changes = objects.listed(of, place.as_deref(), listed, *role == Role::Claimed);
        drop(objects);
        self.changed(watched, changes);
        self.works(watched);
    }

    fn changed(&self, watched: &WatchedType, mut changes: Vec<Change>) {
        if watched.role == Role::Record && !changes.is_empty() {
            // The page with all policies lists the records, so each change of a record must wake this page.
            for change in &mut changes {
                change.is_listed = true;
            }
            self.recorded.notify_one();
        }
        self.tell(&changes);
    }

    /// Records that a watch works.
    pub(super) fn works(&self, WatchedType { of, place, stop, .. }: &WatchedType) {
        let (mut reports, key) = (lock(&self.reports), (of.clone(), place.clone()));
        if stop.is_cancelled() {
            return;
        }
        let was_listing = reports.listing.remove(&key);
        let was_missing = reports.missing.remove(&key).is_some();
        let was_broken = reports.broken.remove(&key).is_some();
        drop(reports);
        if was_listing || was_missing || was_broken {
            self.tell_all();
        }
    }

    /// Records that a watch failed.
    pub(super) fn failed(&self, watched: &WatchedType, is_refused: bool, why: String) {
        let WatchedType { of, place, stop, .. } = watched;
        let (right, key) = (self.right(of, place.as_deref()), (of.clone(), place.clone()));
        let mut reports = lock(&self.reports);
        if stop.is_cancelled() {
            return;
        }
        let is_new = if is_refused {
            reports.broken.remove(&key);
            reports.missing.insert(key.clone(), right).is_none()
        } else {
            reports.broken.insert(key.clone(), why.clone()) != Some(why)
        };
        let was_listing = is_refused && reports.listing.remove(&key);
        drop(reports);
        if is_new || was_listing {
            self.tell_all();
        }
    }

    fn right(&self, of: &ResourceType, place: Option<&str>) -> MissingRight {
        let resource = match self.lock().served(of) {
            KnownType::Served(served) => resource(Some(&served.resource.plural), of),
            KnownType::Unserved | KnownType::Unasked => resource(None, of),
        };
        MissingRight { verb: "list", resource, namespace: place.map(str::to_owned) }
    }

    /// Returns whether the console still reads the objects of the kinds for which policies answer.
    pub(in crate::cli::console) fn is_loading(&self) -> bool {
        !lock(&self.reports).listing.is_empty()
    }

    /// Returns whether the console is still reading the objects of this object's kind and namespace. Until the end of
    /// this read, a missing object may still appear.
    pub(in crate::cli::console) fn is_loading_kind(&self, Identity { group, kind, namespace, .. }: &Identity) -> bool {
        let is_it = |(of, place): &(ResourceType, Place)| {
            of.group_kind() == (group.as_str(), kind.as_str()) && (place.is_none() || place == namespace)
        };
        lock(&self.reports).listing.iter().any(is_it)
    }

    /// Returns the types and namespaces that the user cannot see.
    pub(in crate::cli::console) fn limits(&self) -> Limits {
        let refused = self.places.refused.iter().map(|(of, place)| self.right(of, place.as_deref()));
        let refused: BTreeSet<MissingRight> = refused.collect();
        let reports = lock(&self.reports);
        let broken = |((of, place), why): (&(ResourceType, Place), &String)| match place {
            Some(place) => format!("{} objects in namespace {place} may be out of date: {why}", of.kind),
            None => format!("{} objects may be out of date: {why}", of.kind),
        };
        Limits {
            places: self.places.clone(),
            missing: refused.union(&reports.missing.values().cloned().collect()).cloned().collect(),
            broken: reports.broken.iter().map(broken).collect(),
            policies: self.serving().note.clone(),
        }
    }
}
