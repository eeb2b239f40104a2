//! The policies that answer at one moment. For each kind, a snapshot contains the policies of the cluster, the policies
//! of single namespaces, and the policies that objects can pin.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kaos_policy::{
    contract::{Claim, ResourceType},
    policy::PolicyId,
};
use serde_json::{Value, json};

use super::Kind;

/// The annotation with which an object chooses its policy, by name or by digest.
pub const PIN: &str = "kaos.tools/policy";

/// The minimum number of digits of a digest in a pin.
const DIGITS: usize = 12;

/// For each kind, the namespaces with policies that this process is still loading. An earlier process admitted these
/// policies.
pub type Loading = BTreeMap<ResourceType, BTreeMap<String, Awaited>>;

/// The policies for one kind in one namespace that this process is still loading.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Awaited {
    /// Whether one of the policies answers for objects without a pin.
    pub is_usual: bool,
    /// The names of the policies that answer only for objects with a pin.
    pub named: BTreeSet<String>,
}

/// The policies that answer at one moment.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// The number of swaps so far.
    pub revision: u64,
    pub(super) kinds: BTreeMap<ResourceType, Answers>,
    /// For each kind, the namespaces with a policy that is still being loaded.
    pub(super) loading: Loading,
}

/// The policies that answer for one kind, by place.
#[derive(Debug, Default)]
pub struct Answers {
    /// The policies for namespaces that `namespaces` does not list.
    pub(super) cluster: Option<Arc<Kind>>,
    /// The policies for single namespaces. `None` means that no policy answers in the namespace for now: its policy is
    /// not loaded yet.
    pub(super) namespaces: BTreeMap<String, Option<Arc<Kind>>>,
    /// The policies for objects with a pin, by place, the strongest policy first.
    pub(super) pins: Vec<(Option<String>, Arc<Kind>)>,
    /// The number of the last swap that changed these policies.
    pub since: u64,
    /// Types that any policy for this kind ever emitted.
    pub(super) emitted: BTreeSet<ResourceType>,
}

/// The policies for one kind in one place that a change replaces. Two values are equal if they mean the very same
/// policies. The value keeps these policies alive, so that no later policies can have the same address.
#[derive(Debug, Clone)]
pub(crate) struct Replaced {
    pub(crate) of: ResourceType,
    place: Option<String>,
    kind: Option<Arc<Kind>>,
}

impl Replaced {
    /// Returns a text that identifies the replaced policies, also for another process.
    pub(crate) fn identity(&self) -> Value {
        let Self { of, place, kind } = self;
        json!([of.to_string(), place, kind.as_ref().map(|kind| kind.identity())])
    }
}

impl PartialEq for Replaced {
    fn eq(&self, other: &Self) -> bool {
        let key = |it: &Self| (it.of.clone(), it.place.clone(), it.kind.as_ref().map(Arc::as_ptr));
        key(self) == key(other)
    }
}

impl Eq for Replaced {}

/// The policies that answer for one object.
#[derive(Debug, Clone)]
pub enum Answer {
    /// These policies answer for the object.
    Kind(Arc<Kind>),
    /// The pin matches no policy that answers for this object. Contains the policies that would answer without the pin,
    /// and the policies that the object can pin.
    NoSuchPolicy(Arc<Kind>, Vec<PolicyId>),
    /// No policy answers for the object.
    Nothing,
}

impl Answer {
    /// Returns the policies that answer, or `None` if no policy answers. If the pin matches no policy, returns the
    /// policies that would answer without the pin.
    pub fn kind(self) -> Option<Arc<Kind>> {
        match self {
            Self::Kind(kind) | Self::NoSuchPolicy(kind, _) => Some(kind),
            Self::Nothing => None,
        }
    }

    /// Returns the message for an object with a pin that matches no policy, and `None` for other objects. The operator
    /// leaves such an object and its children unchanged.
    pub fn no_such_policy(&self, object: &Value) -> Option<String> {
        let Self::NoSuchPolicy(_, choice) = self else { return None };
        let (pin, of) = (pin(object).unwrap_or_default(), ResourceType::of_object(object));
        let choice: Vec<String> = choice.iter().map(ToString::to_string).collect();
        let choice = choice.join(", ");
        Some(format!(
            "annotation {PIN}: this namespace has no policy `{pin}` for {of}: name one of {choice}, or remove the \
             annotation"
        ))
    }
}

/// Returns the policy that an object pins, or `None` if the object has no pin.
fn pin(object: &Value) -> Option<&str> {
    object["metadata"]["annotations"][PIN].as_str()
}

impl Snapshot {
    /// Returns the policies that answer for an object, by the object's kind, namespace and pin.
    pub fn answer_for(&self, object: &Value) -> Answer {
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
        self.answer(&ResourceType::of_object(object), namespace, pin(object))
    }

    /// Returns the policies that answer for an object. `pin` is the value of the object's [`PIN`] annotation.
    pub fn answer(&self, of: &ResourceType, namespace: &str, pin: Option<&str>) -> Answer {
        let Some(answers) = self.kinds.get(of) else { return Answer::Nothing };
        let place = answers.namespaces.get_key_value(namespace);
        let usual = answers.usual(namespace);
        let Some(pin) = pin.map(str::trim).filter(|pin| !pin.is_empty()) else {
            return usual.map_or(Answer::Nothing, |kind| Answer::Kind(Arc::clone(kind)));
        };
        let here = || {
            let here = answers.pins.iter().filter(|(at, _)| at.as_ref() == place.map(|(place, _)| place));
            here.map(|(_, kind)| kind)
        };
        match here().find(|kind| names(pin, kind.stack().base().id())) {
            Some(kind) => Answer::Kind(Arc::clone(kind)),
            None => usual.map_or(Answer::Nothing, |usual| {
                let choice = here().map(|kind| kind.stack().base().id().clone()).collect();
                Answer::NoSuchPolicy(Arc::clone(usual), choice)
            }),
        }
    }

    /// Returns whether the policy for an object is still being loaded. Until the policy is loaded, the operator does
    /// nothing for the object and reports nothing. If the policy answers only for objects that pin it, other objects do
    /// not wait for it.
    pub fn is_loading(&self, object: &Value) -> bool {
        let (of, namespace) = (ResourceType::of_object(object), object["metadata"]["namespace"].as_str());
        let places = self.loading.get(&of);
        let Some(awaited) = places.and_then(|places| places.get(namespace.unwrap_or_default())) else { return false };
        let names = |pin: &str| {
            // The digest of a policy is unknown until the policy is loaded, so a pin by digest may refer to an unloaded
            // policy.
            let is_elsewhere = || matches!(self.answer_for(object), Answer::Kind(_));
            awaited.named.contains(pin) || (!awaited.named.is_empty() && !is_elsewhere())
        };
        awaited.is_usual || pin(object).map(str::trim).is_some_and(names)
    }

    /// Returns the kinds and namespaces whose policies are still being loaded.
    pub fn loading(&self) -> &Loading {
        &self.loading
    }

    /// Returns the policies for a kind, or `None` if no policy answers for the kind.
    pub fn of(&self, of: &ResourceType) -> Option<&Answers> {
        self.kinds.get(of)
    }

    /// Returns every kind that a policy answers for.
    pub fn kinds(&self) -> impl Iterator<Item = (&ResourceType, &Answers)> {
        self.kinds.iter()
    }

    /// Returns each policy that answers in a place, for each kind.
    pub fn active(&self) -> Vec<(ResourceType, PolicyId)> {
        let ids = |(of, answers): (&ResourceType, &Answers)| {
            let policies = answers.in_place().flat_map(|kind| kind.policies().map(|policy| policy.id().clone()));
            let ids: BTreeSet<PolicyId> = policies.collect();
            ids.into_iter().map(|id| (of.clone(), id)).collect::<Vec<_>>()
        };
        self.kinds().flat_map(ids).collect()
    }

    /// Returns the policies of `before` that differ in `after`.
    pub(crate) fn replaced(before: &Self, after: &Self) -> Vec<Replaced> {
        let kinds: BTreeSet<&ResourceType> = before.kinds.keys().chain(after.kinds.keys()).collect();
        let none = Answers::default();
        let replaced = kinds.into_iter().flat_map(|of| {
            let [now, then] = [before, after].map(|snapshot| snapshot.kinds.get(of).unwrap_or(&none));
            now.replaced_by(of, then)
        });
        replaced.collect()
    }

    /// Returns every policy that may have to answer: the policies in a place, the policies that objects can pin, and
    /// the predecessors of both.
    pub fn able(&self) -> BTreeSet<PolicyId> {
        let kinds = self.kinds.values().flat_map(Answers::all);
        kinds.flat_map(|kind| kind.policies_ever()).map(|policy| policy.id().clone()).collect()
    }
}

impl Answers {
    /// Returns the policies for objects without a pin in this namespace, or `None` if no policy answers there.
    pub fn usual(&self, namespace: &str) -> Option<&Arc<Kind>> {
        self.namespaces.get(namespace).map_or(self.cluster.as_ref(), Option::as_ref)
    }

    /// Returns the policies for namespaces that are not keys of `namespaces`, or `None` if no policy answers there.
    pub(super) fn of_cluster(&self) -> Option<&Arc<Kind>> {
        self.cluster.as_ref()
    }

    /// Returns the revisions that answer in any place.
    pub fn revisions(&self) -> impl Iterator<Item = &Arc<str>> {
        self.in_place().flat_map(|kind| kind.revisions())
    }

    /// Returns the policies for objects without a pin.
    pub(super) fn in_place(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.cluster.iter().chain(self.namespaces.values().flatten())
    }

    /// Returns the policies that answer for objects with a pin.
    pub(super) fn pinned(&self) -> impl Iterator<Item = &Kind> {
        self.pins.iter().map(|(_, kind)| &**kind)
    }

    /// Removes the policies for objects with a pin for which `keeps` returns false.
    pub(super) fn keep_pinned(&mut self, keeps: impl Fn(&Kind) -> bool) {
        self.pins.retain(|(_, kind)| keeps(kind));
    }

    /// Returns all policies that may have to answer.
    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.in_place().chain(self.pins.iter().map(|(_, kind)| kind))
    }

    /// Returns the claims of all policies that may have to answer.
    pub fn claims(&self) -> impl Iterator<Item = &Claim> {
        self.all().flat_map(|kind| kind.claims_ever())
    }

    /// Returns the types that any policy for this kind ever emitted.
    pub fn emitted(&self) -> &BTreeSet<ResourceType> {
        &self.emitted
    }

    /// Returns whether the objects of a namespace have the same policies as in `before`.
    pub fn are_in(&self, namespace: &str, before: &Self) -> bool {
        let pins = |answers: &Self| -> Vec<Arc<Kind>> {
            let place = answers.namespaces.contains_key(namespace).then_some(namespace);
            answers.pins.iter().filter(|(at, _)| at.as_deref() == place).map(|(_, kind)| Arc::clone(kind)).collect()
        };
        let all =
            |answers: &Self| answers.usual(namespace).cloned().into_iter().chain(pins(answers)).collect::<Vec<_>>();
        let (now, before) = (all(self), all(before));
        now.len() == before.len() && now.iter().zip(&before).all(|(now, before)| Arc::ptr_eq(now, before))
    }

    /// Returns the policies that differ in `after`, by place.
    fn replaced_by(&self, of: &ResourceType, after: &Self) -> Vec<Replaced> {
        let in_place = |place: Option<&String>, kind: Option<&Arc<Kind>>| Replaced {
            of: of.clone(),
            place: place.cloned(),
            kind: kind.cloned(),
        };
        // A policy of a tenant can fall back to the policy of the cluster. A change of the fallback replaces no answer.
        let is_same = |one: Option<&Arc<Kind>>, other: Option<&Arc<Kind>>| match (one, other) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other) || one.answers_like(other),
            (one, other) => one.is_none() && other.is_none(),
        };
        let mut replaced = Vec::new();
        if !is_same(self.cluster.as_ref(), after.cluster.as_ref()) {
            replaced.push(in_place(None, self.cluster.as_ref()));
        }
        let places: BTreeSet<&String> = self.namespaces.keys().chain(after.namespaces.keys()).collect();
        for place in places {
            let (now, then) = (self.usual(place), after.usual(place));
            let is_listed = |answers: &Self| answers.namespaces.contains_key(place);
            if !is_same(now, then) || is_listed(self) != is_listed(after) {
                replaced.push(in_place(Some(place), now));
            }
        }
        let pins = |answers: &'_ Self| {
            let mut by_place: BTreeMap<Option<String>, Vec<Arc<Kind>>> = BTreeMap::new();
            for (place, kind) in &answers.pins {
                by_place.entry(place.clone()).or_default().push(Arc::clone(kind));
            }
            by_place
        };
        let (now, then, none) = (pins(self), pins(after), Vec::new());
        let places: BTreeSet<&Option<String>> = now.keys().chain(then.keys()).collect();
        for place in places {
            let [now, then] = [&now, &then].map(|pins| pins.get(place).unwrap_or(&none));
            let is_in = |kind: &Arc<Kind>, all: &[Arc<Kind>]| all.iter().any(|other| is_same(Some(kind), Some(other)));
            let ends = now.iter().filter(|kind| !is_in(kind, then)).map(Some);
            let begins = then.iter().filter(|kind| !is_in(kind, now)).map(|_| None);
            replaced.extend(ends.chain(begins).map(|kind| in_place(place.as_ref(), kind)));
        }
        replaced
    }

    /// Removes all policies from a namespace, so that no policy answers there.
    pub(super) fn withhold(&mut self, namespace: &str) {
        self.namespaces.insert(namespace.to_owned(), None);
        self.pins.retain(|(place, _)| place.as_deref() != Some(namespace));
    }

    /// Keeps the unchanged entries of `before`. So objects with unchanged policies get no pass.
    pub(super) fn keep(&mut self, before: &Self) {
        let keep = |kind: &mut Arc<Kind>, before: Option<&Arc<Kind>>| {
            if let Some(before) = before.filter(|before| before.is(kind)) {
                *kind = Arc::clone(before);
            }
        };
        if let Some(kind) = &mut self.cluster {
            keep(kind, before.cluster.as_ref());
        }
        for (namespace, kind) in &mut self.namespaces {
            // Compare with the policies that answered before: even if a namespace gains or loses its own entry, its
            // policies may stay the same.
            if let Some(kind) = kind {
                keep(kind, before.usual(namespace));
            }
        }
        for (place, kind) in &mut self.pins {
            let usual = place.as_ref().filter(|place| before.namespaces.contains_key(*place));
            let old = before.pins.iter().find(|(at, old)| at.as_ref() == usual && old.is(kind));
            keep(kind, old.map(|(_, old)| old));
        }
        self.emitted.extend(before.emitted.iter().cloned());
        let same = |answers: &Self| answers.all().map(Arc::as_ptr).collect::<Vec<_>>();
        if same(self) == same(before) {
            self.since = before.since;
        }
    }
}

/// Returns whether a pin matches this policy.
fn names(pin: &str, id: &PolicyId) -> bool {
    let digits = pin.strip_prefix("sha256:").unwrap_or(pin);
    let by_digest = digits.len() >= DIGITS && id.digest.hex().starts_with(digits);
    pin == id.name || by_digest
}
