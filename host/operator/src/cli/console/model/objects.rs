//! The objects that the watches reported, with their states and their connections.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use kaos_policy::{
    contract::{Reference, ResourceType, Selector, Target},
    stamp::{LAST_APPLIED, owners},
};
use serde_json::Value;

use super::{connections::Connections, counts::Counts, open_pages::Change};
use crate::{
    cli::health::{HealthState, state_of},
    hashing::hash,
    input::Identity,
    live::KnownType,
    watch::{Served, is_guarded},
};

/// An object with its state, and a line of text about the state.
#[derive(Debug, Clone)]
pub(in crate::cli::console) struct KeptObject {
    pub(in crate::cli::console) object: Arc<Value>,
    pub(in crate::cli::console) state: HealthState,
    pub(in crate::cli::console) line: String,
    /// Whether a policy answers for the kind.
    is_claimed: bool,
    /// A hash of those parts of the object on which its connections depend.
    wanted: u64,
}

/// An object whose connections are unknown or outdated.
#[derive(Debug, Clone)]
pub(super) struct Unconnected {
    pub(super) identity: Identity,
    pub(super) wanted: u64,
    pub(super) object: Arc<Value>,
}

/// All objects.
#[derive(Debug, Default)]
pub(super) struct Objects {
    all: BTreeMap<Identity, KeptObject>,
    owned: HashMap<String, BTreeSet<Identity>>,
    /// For each type, the namespaces in which the console has read all objects. `None` stands for the whole cluster.
    complete: HashMap<ResourceType, BTreeSet<Option<String>>>,
    served: HashMap<ResourceType, Option<Served>>,
    connections: Connections,
    counts: Counts,
}

impl Objects {
    /// Adds or replaces an object. Returns the change; `None` if the console already has this version of the object.
    pub(super) fn put(&mut self, identity: Identity, mut object: Value, is_claimed: bool) -> Option<Change> {
        slim(&mut object, is_claimed);
        let before = self.all.get(&identity);
        if before.is_some_and(|before| {
            let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
            version(&before.object) == version(&object) && before.is_claimed == is_claimed
        }) {
            return None;
        }
        let (state, line) = state_of(&object, is_claimed);
        let metadata = &object["metadata"];
        let wanted = hash(["uid", "generation", "labels", "annotations"].map(|field| metadata[field].to_string()));
        let kept = KeptObject { object: Arc::new(object), state, line, is_claimed, wanted };
        let looks = |kept: &KeptObject| (kept.state, kept.line.clone(), kept.is_claimed);
        let is_listed =
            (is_claimed || before.is_some_and(|before| before.is_claimed)) && before.map(looks) != Some(looks(&kept));
        let is_asked = before.is_some_and(|before| before.is_claimed && before.wanted == wanted);
        let mut related = self.forget_owners(&identity);
        for uid in uids(&kept.object) {
            self.owned.entry(uid.to_owned()).or_default().insert(identity.clone());
        }
        related.extend(owners_of(&identity, &kept.object));
        if is_claimed {
            self.counts.add(&identity, state.is_open());
            if !is_asked {
                self.connections.ask(identity.clone());
            }
        }
        self.all.insert(identity.clone(), kept);
        related.insert(identity);
        Some(Change { related, is_listed, is_connected: false })
    }

    /// Removes an object. Returns the change; `None` if the console does not have the object.
    pub(super) fn remove(&mut self, identity: &Identity) -> Option<Change> {
        let mut related = self.forget_owners(identity);
        related.extend(self.connections.forget(identity));
        let before = self.all.remove(identity)?;
        related.insert(identity.clone());
        Some(Change { related, is_listed: before.is_claimed, is_connected: before.is_claimed })
    }

    /// Forgets the owners of an object, and no longer counts the object. Returns the owners.
    fn forget_owners(&mut self, identity: &Identity) -> BTreeSet<Identity> {
        let Some(before) = self.all.get(identity) else { return BTreeSet::new() };
        if before.is_claimed {
            self.counts.remove(identity, before.state.is_open());
        }
        for owner in uids(&before.object) {
            if let Some(owned) = self.owned.get_mut(owner) {
                owned.remove(identity);
                if owned.is_empty() {
                    self.owned.remove(owner);
                }
            }
        }
        owners_of(identity, &before.object).collect()
    }

    /// Processes the end of a list: removes the objects of the type and place that the list did not contain. If
    /// `is_whole` is true, the console now has every object of the type in this place.
    pub(super) fn listed(
        &mut self,
        of: &ResourceType,
        place: Option<&str>,
        listed: &BTreeSet<Identity>,
        is_whole: bool,
    ) -> Vec<Change> {
        let changes = self.remove_unless(of, place, |identity| listed.contains(identity));
        if is_whole {
            self.complete.entry(of.clone()).or_default().insert(place.map(str::to_owned));
        }
        changes
    }

    /// Removes all objects of a type, because the console no longer watches the type, or gave the type another role.
    pub(super) fn forget(&mut self, of: &ResourceType) -> Vec<Change> {
        self.complete.remove(of);
        self.remove_unless(of, None, |_| false)
    }

    fn remove_unless(
        &mut self,
        of: &ResourceType,
        place: Option<&str>,
        stays: impl Fn(&Identity) -> bool,
    ) -> Vec<Change> {
        let (group, kind) = of.group_kind();
        let is_gone = |identity: &&Identity| {
            place.is_none_or(|place| identity.namespace.as_deref() == Some(place)) && !stays(identity)
        };
        let gone: Vec<Identity> =
            self.named(group, kind).map(|(identity, _)| identity).filter(is_gone).cloned().collect();
        gone.iter().filter_map(|identity| self.remove(identity)).collect()
    }

    /// Records how the cluster serves a type.
    pub(super) fn serves(&mut self, of: ResourceType, served: Option<Served>) {
        self.served.insert(of, served);
    }

    /// Returns how the cluster serves a type. Returns `Unasked` if the console has not asked the cluster about the
    /// type.
    pub(super) fn served(&self, of: &ResourceType) -> KnownType {
        match self.served.get(of) {
            Some(Some(served)) => KnownType::Served(served.clone()),
            Some(None) => KnownType::Unserved,
            None => KnownType::Unasked,
        }
    }

    /// Returns every object for which a policy answers.
    pub(super) fn claimed(&self) -> impl Iterator<Item = (&Identity, &KeptObject)> {
        self.all.iter().filter(|(_, kept)| kept.is_claimed)
    }

    /// Returns the numbers of the objects for which a policy answers.
    pub(super) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Returns an object.
    pub(super) fn get(&self, identity: &Identity) -> Option<&KeptObject> {
        self.all.get(identity)
    }

    /// Returns the objects of a kind.
    pub(super) fn of_kind<'a>(&'a self, group: &'a str, kind: &'a str) -> impl Iterator<Item = &'a KeptObject> {
        self.named(group, kind).map(|(_, kept)| kept)
    }

    fn named<'a>(&'a self, group: &'a str, kind: &'a str) -> impl Iterator<Item = (&'a Identity, &'a KeptObject)> {
        let first = Identity { group: group.to_owned(), kind: kind.to_owned(), namespace: None, name: String::new() };
        self.all.range(first..).take_while(move |(identity, _)| identity.group == group && identity.kind == kind)
    }

    /// Finds the objects of a target; `None` if the console does not have all of them.
    pub(super) fn find(&self, target: &Target) -> Option<Vec<Arc<Value>>> {
        let of = target.of();
        let complete = self.complete.get(&of).filter(|_| !is_guarded(&of))?;
        let place = target.namespace().map(str::to_owned);
        if !complete.contains(&None) && (place.is_none() || !complete.contains(&place)) {
            return None;
        }
        Some(match target {
            Target::Named(reference) => {
                self.all.get(&Identity::from(reference)).map(|kept| Arc::clone(&kept.object)).into_iter().collect()
            }
            Target::Labelled(Selector { namespace, labels, .. }) => {
                let is_meant = |object: &Value| {
                    let metadata = &object["metadata"];
                    namespace.as_ref().is_none_or(|namespace| metadata["namespace"] == namespace.as_str())
                        && labels.iter().all(|(name, value)| metadata["labels"][name] == value.as_str())
                };
                let all = self.of_kind(of.group(), &of.kind).map(|kept| &kept.object);
                all.filter(|object| is_meant(object)).cloned().collect()
            }
        })
    }

    /// Returns the objects that the object with this UID owns.
    pub(super) fn owned_by(&self, uid: &str) -> Vec<Arc<Value>> {
        let owned = self.owned.get(uid).into_iter().flatten();
        owned.filter_map(|identity| Some(Arc::clone(&self.all.get(identity)?.object))).collect()
    }

    /// Returns up to `most` objects whose connections are unknown or outdated.
    pub(super) fn unconnected(&self, most: usize) -> Vec<Unconnected> {
        let open = self.connections.asked().filter_map(|identity| Some((identity, self.all.get(identity)?)));
        let open = open.take(most).map(|(identity, kept)| {
            let (identity, object) = (identity.clone(), Arc::clone(&kept.object));
            Unconnected { identity, wanted: kept.wanted, object }
        });
        open.collect()
    }

    /// Marks the connections of an object as outdated if `is_outdated` returns true.
    pub(super) fn disconnect(&mut self, is_outdated: impl Fn(&ResourceType, &Identity) -> bool) {
        for (identity, kept) in self.all.iter().filter(|(_, kept)| kept.is_claimed) {
            if is_outdated(&ResourceType::of_object(&kept.object), identity) {
                self.connections.ask(identity.clone());
            }
        }
    }

    /// Records which objects an object uses. Returns the change.
    ///
    /// Does nothing if the object has changed or disappeared since the policies named these objects.
    pub(super) fn connect(&mut self, identity: &Identity, wanted: u64, uses: Vec<Identity>) -> Option<Change> {
        self.all.get(identity).filter(|kept| kept.is_claimed && kept.wanted == wanted)?;
        let mut related = self.connections.set(identity, uses)?;
        related.insert(identity.clone());
        Some(Change { related, is_listed: false, is_connected: true })
    }

    /// Returns the objects that an object uses.
    pub(super) fn uses(&self, identity: &Identity) -> &[Identity] {
        self.connections.uses(identity)
    }

    /// Returns the objects that use an object.
    pub(super) fn users(&self, identity: &Identity) -> impl Iterator<Item = &Identity> {
        self.connections.users(identity)
    }

    /// Returns the number of objects that use others, and the number of objects that others use.
    #[cfg(test)]
    pub(super) fn connected(&self) -> (usize, usize) {
        self.connections.sizes()
    }
}

/// Removes the parts of an object that no page shows. Also removes the pod templates and data of children, because a
/// cluster has many children.
fn slim(object: &mut Value, is_claimed: bool) {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.remove(LAST_APPLIED);
        }
    }
    if is_claimed {
        return;
    }
    if let Some(template) = object.pointer_mut("/spec/template").and_then(Value::as_object_mut) {
        template.remove("spec");
    }
    if let Some(fields) = object.as_object_mut().filter(|fields| fields.get("kind").is_some_and(|it| it == "ConfigMap"))
    {
        fields.remove("data");
        fields.remove("binaryData");
    }
}

fn uids(object: &Value) -> impl Iterator<Item = &str> {
    owners(object).iter().filter_map(|owner| owner["uid"].as_str())
}

/// Returns the owners of an object.
fn owners_of<'a>(owned: &'a Identity, object: &'a Value) -> impl Iterator<Item = Identity> + 'a {
    owners(object).iter().map(|owner| {
        let text = |field: &str| owner[field].as_str().unwrap_or_default().to_owned();
        let of = ResourceType::new(text("apiVersion"), text("kind"));
        let (group, kind) = of.group_kind();
        let (group, kind) = (group.to_owned(), kind.to_owned());
        Identity { group, kind, namespace: owned.namespace.clone(), name: text("name") }
    })
}

/// Returns the identity of an object in a cluster.
pub(super) fn identity_of(object: &Value) -> Identity {
    Identity::from(&Reference::of_object(object))
}

#[cfg(test)]
mod tests;
