//! The objects of a cluster with their connections: what an object uses, its children, and its Events.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use kaos_policy::{
    contract::{Need, Reference, ResourceType, Target},
    stamp::owners,
};
use serde_json::Value;

use super::{
    object_health::{Health, HealthState},
    pod,
    state::{health, health_of_claimed},
};
use crate::input::{Document, Identity};

/// The needs of objects.
pub(super) type ObjectNeeds = BTreeMap<Identity, Vec<Need>>;

/// An object that another object uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Use {
    /// The used object.
    pub(super) reference: Reference,
    /// Whether the need is optional: the policy gives a full answer even if the object does not exist.
    pub(super) optional: bool,
    /// Whether the object exists, if the command could find that out.
    pub(super) sight: UseSight,
}

/// Whether a used object exists, if a command could find that out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum UseSight {
    /// The object exists.
    There(Identity),
    /// The object does not exist.
    Absent,
    /// The command did not read the object: the user lacks the right, or the cluster does not serve the type, or the
    /// object is a Secret.
    NotRead,
}

/// Objects and their connections.
pub(super) struct Graph {
    documents: Vec<Document>,
    claimed: Vec<bool>,
    health: Vec<Health>,
    positions: HashMap<Identity, usize>,
    owned: HashMap<String, Vec<usize>>,
    uses: HashMap<Identity, Vec<Use>>,
}

impl Graph {
    /// Connects objects. `is_claimed` returns whether a policy answers for an object. `is_denied` returns whether the
    /// user lacks the right to read a target. `is_hidden` returns whether the command could not read the objects of a
    /// type.
    pub(super) fn new(
        documents: Vec<Document>,
        needs: &ObjectNeeds,
        is_claimed: impl Fn(&Value) -> bool,
        is_denied: impl Fn(&Target) -> bool,
        is_hidden: impl Fn(&ResourceType) -> bool,
    ) -> Self {
        let positions: HashMap<Identity, usize> =
            documents.iter().enumerate().map(|(position, document)| (document.identity.clone(), position)).collect();
        let mut owned: HashMap<String, Vec<usize>> = HashMap::new();
        for (position, document) in documents.iter().enumerate() {
            for owner in owners(&document.object).iter().filter_map(|owner| owner["uid"].as_str()) {
                owned.entry(owner.to_owned()).or_default().push(position);
            }
        }
        let sight = |target: &Target, reference: &Reference| {
            let identity = Identity::from(reference);
            if positions.contains_key(&identity) {
                return UseSight::There(identity);
            }
            if is_denied(target) || is_hidden(&target.of()) { UseSight::NotRead } else { UseSight::Absent }
        };
        let found = |target: &Target| -> Vec<Reference> {
            match target {
                Target::Named(reference) => vec![reference.clone()],
                Target::Labelled(_) => documents
                    .iter()
                    .filter(|document| is_selected(target, document))
                    .map(|document| Reference::of_object(&document.object))
                    .collect(),
            }
        };
        let mut uses = HashMap::new();
        for (user, needs) in needs {
            let mut used: Vec<Use> = Vec::new();
            for need in needs {
                for reference in found(&need.target) {
                    let is_itself = Identity::from(&reference) == *user;
                    match used.iter_mut().find(|known| known.reference == reference) {
                        Some(known) => known.optional &= need.optional,
                        None if is_itself => {}
                        None => {
                            let sight = sight(&need.target, &reference);
                            used.push(Use { reference, optional: need.optional, sight });
                        }
                    }
                }
            }
            uses.insert(user.clone(), used);
        }
        let claimed: Vec<bool> = documents.iter().map(|document| is_claimed(&document.object)).collect();
        let states = documents.iter().zip(&claimed).map(|(document, claimed)| {
            if *claimed { health_of_claimed(&document.object) } else { health(&document.object) }
        });
        let health = states.collect();
        Self { documents, claimed, health, positions, owned, uses }
    }

    /// Returns an object.
    pub(super) fn object(&self, identity: &Identity) -> &Value {
        self.positions.get(identity).map_or(&Value::Null, |position| &self.documents[*position].object)
    }

    /// Returns the state of an object.
    pub(super) fn health(&self, identity: &Identity) -> Health {
        self.positions
            .get(identity)
            .map_or_else(|| Health::new(HealthState::Missing, ""), |it| self.health[*it].clone())
    }

    /// Returns whether an object needs attention.
    pub(super) fn is_open(&self, identity: &Identity) -> bool {
        self.health(identity).state.is_open()
    }

    /// Returns whether a policy answers for the kind of an object.
    pub(super) fn is_claimed(&self, identity: &Identity) -> bool {
        self.positions.get(identity).is_some_and(|position| self.claimed[*position])
    }

    /// Returns every object.
    pub(super) fn documents(&self) -> &[Document] {
        &self.documents
    }

    /// Returns the objects that an object uses.
    pub(super) fn uses(&self, identity: &Identity) -> &[Use] {
        self.uses.get(identity).map_or(&[], Vec::as_slice)
    }

    /// Returns the objects that an object owns.
    pub(super) fn children(&self, identity: &Identity) -> impl Iterator<Item = &Document> {
        let uid = self.object(identity)["metadata"]["uid"].as_str().unwrap_or_default();
        self.owned.get(uid).into_iter().flatten().map(|position| &self.documents[*position])
    }

    /// Returns an object and everything below it, each object once.
    pub(super) fn below<'a>(&'a self, top: &Identity) -> Vec<&'a Document> {
        let mut seen = BTreeSet::new();
        let (mut open, mut found) = (vec![top.clone()], Vec::new());
        while let Some(next) = open.pop() {
            if let Some(position) = self.positions.get(&next).filter(|position| seen.insert(**position)) {
                found.push(&self.documents[*position]);
                open.extend(self.children(&next).map(|child| child.identity.clone()));
            }
        }
        found
    }

    /// Returns the volume claims that a pod mounts and that the command read.
    pub(super) fn claims(&self, pod: &Identity) -> impl Iterator<Item = &Document> {
        let claims = pod::claims(self.object(pod), pod.namespace.as_deref());
        claims.filter_map(move |claim| Some(&self.documents[*self.positions.get(&Identity::from(&claim))?]))
    }

    /// Returns every Event.
    pub(super) fn events(&self) -> impl Iterator<Item = &Value> {
        self.documents.iter().filter(|document| document.identity.kind == "Event").map(|document| &document.object)
    }

    /// Finds the Events about an object that have one of these reasons, and returns the message of the newest Event.
    pub(super) fn newest_event(&self, about: &Identity, reasons: &[&str]) -> Option<String> {
        let uid = &self.object(about)["metadata"]["uid"];
        let newest = self
            .events()
            .filter(|event| event["involvedObject"]["uid"] == *uid)
            .filter(|event| event["reason"].as_str().is_some_and(|reason| reasons.contains(&reason)))
            .max_by_key(|event| last_seen(event))?;
        newest["message"].as_str().map(str::to_owned)
    }
}

/// Returns whether an object is a `ReplicaSet` with 0 replicas: a newer `ReplicaSet` replaced it.
pub(super) fn is_replaced(child: &Document) -> bool {
    child.identity.kind == "ReplicaSet" && child.object["spec"]["replicas"] == 0
}

/// Returns the time when an Event was last seen.
pub(super) fn last_seen(event: &Value) -> &str {
    let times = [&event["series"]["lastObservedTime"], &event["lastTimestamp"], &event["eventTime"]];
    let mut times = times.into_iter().chain([&event["firstTimestamp"], &event["metadata"]["creationTimestamp"]]);
    times.find_map(Value::as_str).unwrap_or_default()
}

fn is_selected(target: &Target, document: &Document) -> bool {
    let Target::Labelled(selector) = target else { return false };
    let labels = &document.object["metadata"]["labels"];
    let is_of_kind = ResourceType::of_object(&document.object) == selector.of;
    let is_here = selector.namespace.is_none() || selector.namespace == document.identity.namespace;
    is_of_kind && is_here && selector.labels.iter().all(|(name, value)| labels[name] == *value)
}
