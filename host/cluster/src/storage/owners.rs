//! Which object has which UID, and which objects name it as their owner.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Place, meta};

/// The index.
#[derive(Debug, Default)]
pub(super) struct Owners {
    places: BTreeMap<String, Place>,
    dependents: BTreeMap<String, BTreeSet<Place>>,
    /// Pods and `ReplicaSet`s that nobody controls, which are few: they are looked for whenever one might be adopted.
    free: BTreeSet<Place>,
}

impl Owners {
    /// An object at `place` changed.
    pub(super) fn replace(&mut self, place: &Place, before: Option<&Value>, after: Option<&Value>) {
        self.free.remove(place);
        if let Some(before) = before {
            self.places.remove(meta(before, "uid"));
            for uid in owner_uids(before) {
                if let Some(set) = self.dependents.get_mut(uid) {
                    set.remove(place);
                    if set.is_empty() {
                        self.dependents.remove(uid);
                    }
                }
            }
        }
        if let Some(after) = after {
            if matches!(place.resource.plural.as_str(), "pods" | "replicasets") && !is_controlled(after) {
                self.free.insert(place.clone());
            }
            self.places.insert(meta(after, "uid").to_owned(), place.clone());
            for uid in owner_uids(after) {
                self.dependents.entry(uid.to_owned()).or_default().insert(place.clone());
            }
        }
    }

    pub(super) fn free(&self) -> impl Iterator<Item = &Place> {
        self.free.iter()
    }

    pub(super) fn place(&self, uid: &str) -> Option<&Place> {
        self.places.get(uid)
    }

    pub(super) fn dependents(&self, uid: &str) -> Vec<Place> {
        self.dependents.get(uid).into_iter().flatten().cloned().collect()
    }
}

fn is_controlled(object: &Value) -> bool {
    let owners = object["metadata"]["ownerReferences"].as_array();
    owners.is_some_and(|owners| owners.iter().any(|owner| owner["controller"] == true))
}

fn owner_uids(object: &Value) -> impl Iterator<Item = &str> {
    object["metadata"]["ownerReferences"].as_array().into_iter().flatten().filter_map(|owner| owner["uid"].as_str())
}
