//! What answers, all of one moment: for each kind the stack of the cluster, those of single namespaces, and those that
//! objects may name.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kaos_policy::{
    contract::{Claim, ResourceType},
    policy::PolicyId,
};
use serde_json::Value;

use super::Kind;

/// The annotation in which an object names the policy that is to answer for it: by its name, or by its digest.
pub const PIN: &str = "kaos.tools/policy";

/// The digits of a digest that a pin has at least.
const DIGITS: usize = 12;

/// By kind, the namespaces in which a policy answers that was let in before this process began and is being loaded still.
pub type Loading = BTreeMap<ResourceType, BTreeSet<String>>;

/// What answers, all of one moment.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// Counts the swaps.
    pub revision: u64,
    pub(super) kinds: BTreeMap<ResourceType, Answers>,
    /// By kind, the namespaces in which a policy answers that is being loaded still.
    pub(super) loading: Loading,
}

/// What answers for one kind, by place.
#[derive(Debug, Default)]
pub struct Answers {
    /// Where nothing else does.
    pub(super) cluster: Option<Arc<Kind>>,
    /// In single namespaces; none where nothing answers although there are policies for the place.
    pub(super) namespaces: BTreeMap<String, Option<Arc<Kind>>>,
    /// For objects that name a policy, by place, what counts most first.
    pub(super) pins: Vec<(Option<String>, Arc<Kind>)>,
    /// The swap that brought something of it.
    pub since: u64,
    /// Types that a policy for this kind ever emitted.
    pub(super) emitted: BTreeSet<ResourceType>,
}

/// What answers for one object.
#[derive(Debug, Clone)]
pub enum Answer {
    /// These policies.
    Kind(Arc<Kind>),
    /// The object names a policy that there is not, or not for it. What would answer without the name, and which policies
    /// it may name.
    NoSuchPolicy(Arc<Kind>, Vec<PolicyId>),
    /// Nothing.
    Nothing,
}

impl Answer {
    /// What answers; for an object that names a policy that it cannot have, what would answer without the name.
    pub fn kind(self) -> Option<Arc<Kind>> {
        match self {
            Self::Kind(kind) | Self::NoSuchPolicy(kind, _) => Some(kind),
            Self::Nothing => None,
        }
    }

    /// The message for an object that names a policy that it cannot have: everything of it stays as it is.
    pub fn no_such_policy(&self, object: &Value) -> Option<String> {
        let Self::NoSuchPolicy(_, choice) = self else { return None };
        let (pin, of) = (pin(object).unwrap_or_default(), ResourceType::of_object(object));
        let choice: Vec<String> = choice.iter().map(ToString::to_string).collect();
        let choice = choice.join(", ");
        Some(format!(
            "annotation {PIN}: there is no policy `{pin}` for {of} here: name one of {choice}, or remove the annotation"
        ))
    }
}

/// The policy that an object names.
fn pin(object: &Value) -> Option<&str> {
    object["metadata"]["annotations"][PIN].as_str()
}

impl Snapshot {
    /// What answers for an object as it says itself.
    pub fn answer_for(&self, object: &Value) -> Answer {
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
        self.answer(&ResourceType::of_object(object), namespace, pin(object))
    }

    /// What answers for an object; `pin` is what it says in [`PIN`].
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

    /// Whether what answers for objects of a kind in a namespace is being loaded still: until it is, nothing is done and
    /// nothing is told.
    pub fn is_loading(&self, of: &ResourceType, namespace: &str) -> bool {
        self.loading.get(of).is_some_and(|namespaces| namespaces.contains(namespace))
    }

    /// What is being loaded still.
    pub fn loading(&self) -> &Loading {
        &self.loading
    }

    /// What answers for a kind.
    pub fn of(&self, of: &ResourceType) -> Option<&Answers> {
        self.kinds.get(of)
    }

    /// Every kind that something answers for.
    pub fn kinds(&self) -> impl Iterator<Item = (&ResourceType, &Answers)> {
        self.kinds.iter()
    }

    /// Each policy for each kind.
    pub fn active(&self) -> Vec<(ResourceType, PolicyId)> {
        let ids = |(of, answers): (&ResourceType, &Answers)| {
            let policies = answers.in_place().flat_map(|kind| kind.policies().map(|policy| policy.id().clone()));
            let ids: BTreeSet<PolicyId> = policies.collect();
            ids.into_iter().map(|id| (of.clone(), id)).collect::<Vec<_>>()
        };
        self.kinds().flat_map(ids).collect()
    }

    /// Every policy that may have to answer: those in place, those that objects may name, and those before them.
    pub fn able(&self) -> BTreeSet<PolicyId> {
        let kinds = self.kinds.values().flat_map(Answers::all);
        kinds.flat_map(|kind| kind.policies_ever()).map(|policy| policy.id().clone()).collect()
    }
}

impl Answers {
    /// What answers for objects of a namespace that name no policy.
    pub fn usual(&self, namespace: &str) -> Option<&Arc<Kind>> {
        self.namespaces.get(namespace).map_or(self.cluster.as_ref(), Option::as_ref)
    }

    /// What answers where nothing else does.
    pub(super) fn of_cluster(&self) -> Option<&Arc<Kind>> {
        self.cluster.as_ref()
    }

    /// The revisions that answer anywhere.
    pub fn revisions(&self) -> impl Iterator<Item = &Arc<str>> {
        self.in_place().flat_map(|kind| kind.revisions())
    }

    /// What answers for objects that name no policy.
    fn in_place(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.cluster.iter().chain(self.namespaces.values().flatten())
    }

    /// Everything that may have to answer.
    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.in_place().chain(self.pins.iter().map(|(_, kind)| kind))
    }

    /// What everything that may have to answer claims.
    pub fn claims(&self) -> impl Iterator<Item = &Claim> {
        self.all().flat_map(|kind| kind.claims_ever())
    }

    /// Types that a policy for this kind ever emitted.
    pub fn emitted(&self) -> &BTreeSet<ResourceType> {
        &self.emitted
    }

    /// Whether objects of a namespace are answered for as before.
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

    /// Has nothing answer in a namespace.
    pub(super) fn withhold(&mut self, namespace: &str) {
        self.namespaces.insert(namespace.to_owned(), None);
        self.pins.retain(|(place, _)| place.as_deref() != Some(namespace));
    }

    /// Keeps what is as it was before, so that nobody looks at objects again that nothing changes for.
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
            // A namespace that gets a place of its own, or loses it, may be answered for as the cluster was.
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

/// Whether a pin means this policy.
fn names(pin: &str, id: &PolicyId) -> bool {
    let digits = pin.strip_prefix("sha256:").unwrap_or(pin);
    let by_digest = digits.len() >= DIGITS && id.digest.hex().starts_with(digits);
    pin == id.name || by_digest
}
