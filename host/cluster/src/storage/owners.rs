//! Indexes objects by their UID and by the UIDs of their owners.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{ObjectId, meta};

/// The index of objects by UID and by owner.
#[derive(Debug, Default)]
pub(super) struct Owners {
    places: BTreeMap<String, ObjectId>,
    dependents: BTreeMap<String, BTreeSet<ObjectId>>,
    /// Pods and `ReplicaSet`s without a controller. Controllers that adopt objects search only this small set.
    free: BTreeSet<ObjectId>,
}

impl Owners {
    /// Updates the index after a change of the object at `place`.
    pub(super) fn replace(&mut self, place: &ObjectId, before: Option<&Value>, after: Option<&Value>) {
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
            if matches!(place.resource.plural.as_str(), "pods" | "replicasets") && controller(after).is_none() {
                self.free.insert(place.clone());
            }
            self.places.insert(meta(after, "uid").to_owned(), place.clone());
            for uid in owner_uids(after) {
                self.dependents.entry(uid.to_owned()).or_default().insert(place.clone());
            }
        }
    }

    pub(super) fn free(&self) -> impl Iterator<Item = &ObjectId> {
        self.free.iter()
    }

    pub(super) fn place(&self, uid: &str) -> Option<&ObjectId> {
        self.places.get(uid)
    }

    pub(super) fn dependents(&self, uid: &str) -> Vec<ObjectId> {
        self.dependents.get(uid).into_iter().flatten().cloned().collect()
    }
}

/// Returns the owner references of an object.
pub(crate) fn owners(object: &Value) -> &[Value] {
    object["metadata"]["ownerReferences"].as_array().map_or(&[], Vec::as_slice)
}

/// Returns the owner reference of an object's controller, or `None` without a controller.
pub(crate) fn controller(object: &Value) -> Option<&Value> {
    owners(object).iter().find(|owner| owner["controller"] == true)
}

fn owner_uids(object: &Value) -> impl Iterator<Item = &str> {
    owners(object).iter().filter_map(|owner| owner["uid"].as_str())
}
