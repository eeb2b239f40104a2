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

use crate::{
    cli::health::{HealthState, state_of},
    hashing::hash,
    input::Identity,
    live::KnownType,
    watch::{Served, is_guarded},
};

/// An object, and its state in a line.
#[derive(Debug, Clone)]
pub(in crate::cli::console) struct KeptObject {
    pub(in crate::cli::console) object: Arc<Value>,
    pub(in crate::cli::console) state: HealthState,
    pub(in crate::cli::console) line: String,
    /// Whether a policy answers for the kind.
    is_claimed: bool,
    /// A hash of everything on which the connections of the object depend.
    wanted: u64,
}

/// The connections of an object that the console shows.
#[derive(Debug, Clone, Default)]
struct Connections {
    /// The hash of the object, and the number of the policies, from which the connections come.
    from: (u64, u64),
    uses: Vec<Identity>,
}

/// All objects.
#[derive(Debug, Default)]
pub(super) struct Objects {
    all: BTreeMap<Identity, KeptObject>,
    owned: HashMap<String, BTreeSet<Identity>>,
    /// The types whose objects the console has completely, with the namespaces; `None` for the whole cluster.
    complete: HashMap<ResourceType, BTreeSet<Option<String>>>,
    served: HashMap<ResourceType, Option<Served>>,
    connections: HashMap<Identity, Connections>,
    users: HashMap<Identity, BTreeSet<Identity>>,
}

impl Objects {
    /// Adds or replaces an object.
    pub(super) fn put(&mut self, identity: Identity, mut object: Value, is_claimed: bool) {
        slim(&mut object, is_claimed);
        let before = self.all.get(&identity);
        if before.is_some_and(|before| {
            let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
            version(&before.object) == version(&object) && before.is_claimed == is_claimed
        }) {
            return;
        }
        self.forget_owners(&identity);
        for owner in owners(&object).iter().filter_map(|owner| owner["uid"].as_str()) {
            self.owned.entry(owner.to_owned()).or_default().insert(identity.clone());
        }
        let (state, line) = state_of(&object, is_claimed);
        let metadata = &object["metadata"];
        let wanted = ["uid", "generation", "labels", "annotations"].map(|field| metadata[field].to_string());
        let kept = KeptObject { object: Arc::new(object), state, line, is_claimed, wanted: hash(wanted) };
        self.all.insert(identity, kept);
    }

    /// Removes an object.
    pub(super) fn remove(&mut self, identity: &Identity) {
        self.forget_owners(identity);
        self.connect(identity, (0, 0), Vec::new());
        self.connections.remove(identity);
        self.all.remove(identity);
    }

    fn forget_owners(&mut self, identity: &Identity) {
        let Some(before) = self.all.get(identity) else { return };
        for owner in owners(&before.object).iter().filter_map(|owner| owner["uid"].as_str()) {
            if let Some(owned) = self.owned.get_mut(owner) {
                owned.remove(identity);
                if owned.is_empty() {
                    self.owned.remove(owner);
                }
            }
        }
    }

    /// Ends a list: removes the objects of the type and place that the list did not contain. If `is_whole` is true, the
    /// console now has every object of the type in this place.
    pub(super) fn listed(
        &mut self,
        of: &ResourceType,
        place: Option<&str>,
        listed: &BTreeSet<Identity>,
        is_whole: bool,
    ) {
        let (group, kind) = of.group_kind();
        let is_gone = |identity: &&Identity| {
            place.is_none_or(|place| identity.namespace.as_deref() == Some(place)) && !listed.contains(*identity)
        };
        let gone: Vec<Identity> =
            self.named(group, kind).map(|(identity, _)| identity).filter(is_gone).cloned().collect();
        for identity in &gone {
            self.remove(identity);
        }
        if is_whole {
            self.complete.entry(of.clone()).or_default().insert(place.map(str::to_owned));
        }
    }

    /// Records how the cluster serves a type.
    pub(super) fn serves(&mut self, of: ResourceType, served: Option<Served>) {
        self.served.insert(of, served);
    }

    /// Returns how the cluster serves a type, if the console asked.
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

    /// Returns up to `most` objects whose connections are unknown or outdated. `policies` is the number of the current
    /// policies.
    pub(super) fn unconnected(&self, policies: u64, most: usize) -> Vec<(Identity, u64, Arc<Value>)> {
        let is_new = |identity: &Identity, kept: &KeptObject| {
            self.connections.get(identity).is_none_or(|known| known.from != (kept.wanted, policies))
        };
        let open = self.claimed().filter(|(identity, kept)| is_new(identity, kept)).take(most);
        open.map(|(identity, kept)| (identity.clone(), kept.wanted, Arc::clone(&kept.object))).collect()
    }

    /// Records what an object uses.
    pub(super) fn connect(&mut self, identity: &Identity, from: (u64, u64), uses: Vec<Identity>) {
        let before = self.connections.remove(identity).unwrap_or_default();
        for used in before.uses {
            if let Some(users) = self.users.get_mut(&used) {
                users.remove(identity);
                if users.is_empty() {
                    self.users.remove(&used);
                }
            }
        }
        for used in &uses {
            self.users.entry(used.clone()).or_default().insert(identity.clone());
        }
        self.connections.insert(identity.clone(), Connections { from, uses });
    }

    /// Returns the objects that an object uses.
    pub(super) fn uses(&self, identity: &Identity) -> &[Identity] {
        self.connections.get(identity).map_or(&[], |known| &known.uses)
    }

    /// Returns the objects that use an object.
    pub(super) fn users(&self, identity: &Identity) -> impl Iterator<Item = &Identity> {
        self.users.get(identity).into_iter().flatten()
    }

    /// Decides again which objects have a policy.
    pub(super) fn claim(&mut self, is_claimed: impl Fn(&ResourceType) -> bool) {
        for kept in self.all.values_mut() {
            let is_now = is_claimed(&ResourceType::of_object(&kept.object));
            if kept.is_claimed != is_now {
                kept.is_claimed = is_now;
                (kept.state, kept.line) = state_of(&kept.object, is_now);
            }
        }
    }
}

/// Removes the parts of an object that no page shows. Children are many, so their pod templates and data go too.
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

/// Returns the identity of an object in a cluster.
pub(super) fn identity_of(object: &Value) -> Identity {
    Identity::from(&Reference::of_object(object))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn agent(name: &str, version: u32) -> Value {
        json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "Agent", "metadata":
            {"name": name, "namespace": "team", "uid": name, "resourceVersion": version.to_string()}})
    }

    #[test]
    fn a_list_replaces_what_the_watch_missed_and_answers_for_its_place_only() {
        let of = ResourceType::new("kaos.tools/v1alpha1", "Agent");
        let target = |namespace: &str, name: &str| {
            let (api_version, kind) = (of.api_version.clone(), of.kind.clone());
            Target::Named(Reference { api_version, kind, namespace: Some(namespace.to_owned()), name: name.to_owned() })
        };
        let mut objects = Objects::default();
        for name in ["a", "b"] {
            objects.put(identity_of(&agent(name, 1)), agent(name, 1), true);
        }
        assert!(objects.find(&target("team", "a")).is_none(), "the list has not ended");
        objects.listed(&of, Some("team"), &BTreeSet::from([identity_of(&agent("a", 1))]), true);
        assert_eq!(objects.find(&target("team", "a")).map(|found| found.len()), Some(1));
        assert_eq!(objects.find(&target("team", "b")).map(|found| found.len()), Some(0));
        assert!(objects.find(&target("other", "a")).is_none());
    }

    #[test]
    fn connections_follow_both_ways_until_the_object_changes_or_goes() {
        let (user, used) = (identity_of(&agent("a", 1)), identity_of(&agent("b", 1)));
        let mut objects = Objects::default();
        objects.put(user.clone(), agent("a", 1), true);
        let [(_, wanted, _)] = objects.unconnected(1, 9).try_into().unwrap_or_else(|_| panic!("one object"));
        objects.connect(&user, (wanted, 1), vec![used.clone()]);
        assert_eq!((objects.uses(&user).len(), objects.users(&used).count()), (1, 1));
        assert!(objects.unconnected(1, 9).is_empty());
        assert_eq!(objects.unconnected(2, 9).len(), 1, "other policies may ask for other objects");
        objects.remove(&user);
        assert_eq!((objects.uses(&user).len(), objects.users(&used).count()), (0, 0));
    }

    #[test]
    fn children_keep_neither_pod_specs_nor_data() {
        let mut child =
            json!({"kind": "Deployment", "spec": {"replicas": 1, "template": {"spec": {"containers": []}}}});
        slim(&mut child, false);
        assert_eq!(child, json!({"kind": "Deployment", "metadata": null, "spec": {"replicas": 1, "template": {}}}));
        let mut map = json!({"kind": "ConfigMap", "data": {"a": "b"}, "metadata": {"managedFields": []}});
        slim(&mut map, false);
        assert_eq!(map, json!({"kind": "ConfigMap", "metadata": {}}));
    }
}
