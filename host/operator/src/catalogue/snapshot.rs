//! The policies that answer at one moment. For each kind, a snapshot contains the policies of the cluster, the policies
//! of single namespaces, and the policies that objects can pin.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kaos_policy::{contract::ResourceType, policy::PolicyId};
use serde_json::Value;

use super::{Answers, Arranged, Kind, Predecessors, Replaced, Staging, staging::Table};

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
    /// The running rollouts.
    pub(super) staging: Staging,
}

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
    /// leaves an object with such a pin unchanged, and also its children.
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
    /// Creates the snapshot that replaces the snapshot `before`. Reuses each `Kind` value that did not change.
    pub(super) fn after(
        before: Option<&Self>,
        revision: u64,
        loading: Loading,
        Arranged { answers: mut kinds, mut staging, .. }: Arranged,
    ) -> Self {
        let earlier: Vec<&BTreeMap<ResourceType, Answers>> = before
            .into_iter()
            .flat_map(|before| std::iter::once(&before.kinds).chain(before.staging.tables()))
            .collect();
        for (of, answers) in &mut kinds {
            answers.since = revision;
            for earlier in earlier.iter().filter_map(|table| table.get(of)) {
                answers.share(earlier);
            }
            if let Some(before) = before.and_then(|before| before.kinds.get(of)) {
                answers.keep(before);
            }
        }
        for (of, answers) in staging.before.values_mut().flatten() {
            for earlier in earlier.iter().copied().chain([&kinds]).filter_map(|table| table.get(of)) {
                answers.share(earlier);
            }
        }
        let only_before: BTreeSet<ResourceType> =
            staging.tables().flat_map(BTreeMap::keys).filter(|of| !kinds.contains_key(of)).cloned().collect();
        for of in only_before {
            kinds.insert(of, Answers { since: revision, ..Answers::default() });
        }
        for (of, answers) in &mut kinds {
            answers.yielding = staging.yielding(of);
            for table in staging.tables() {
                answers.emitted.extend(table.get(of).into_iter().flat_map(|before| before.emitted.iter().cloned()));
            }
        }
        Self { revision, kinds, loading, staging }
    }

    /// Returns the policies that answer for an object, by the object's kind, namespace, name and pin.
    pub fn answer_for(&self, object: &Value) -> Answer {
        let [namespace, name] =
            ["namespace", "name"].map(|field| object["metadata"][field].as_str().unwrap_or_default());
        self.answer(&ResourceType::of_object(object), namespace, name, pin(object))
    }

    /// Returns the policies that answer for an object. `pin` is the value of the object's [`PIN`] annotation.
    pub fn answer(&self, of: &ResourceType, namespace: &str, name: &str, pin: Option<&str>) -> Answer {
        let table = self.staging.table_for(of, namespace, name);
        let answers = self.answers_in(table, of);
        let usual = answers.and_then(|answers| answers.usual(namespace));
        let Some(pin) = pin.map(str::trim).filter(|pin| !pin.is_empty()) else {
            return usual.map_or(Answer::Nothing, |kind| Answer::Kind(Arc::clone(kind)));
        };
        let pins = |answers: &'_ Answers| -> Vec<Arc<Kind>> { answers.pins_in(namespace).map(Arc::clone).collect() };
        let mut all = answers.map(pins).unwrap_or_default();
        // An object can pin a revision even before the rollout of this revision has moved the object. While the
        // revision that must answer is not loaded, a pin with the policy's name must not match another revision.
        let is_clear = |kind: &Arc<Kind>| {
            let is_name = !is_digest_of(pin, kind.stack().base().id());
            table != Table::None || !is_name || !self.staging.concerns_policy(pin)
        };
        let current = self.kinds.get(of).filter(|current| answers.is_none_or(|it| !std::ptr::eq(*current, it)));
        all.extend(current.map(pins).unwrap_or_default().into_iter().filter(is_clear));
        match all.into_iter().find(|kind| names(pin, kind.stack().base().id())) {
            Some(kind) => Answer::Kind(kind),
            None => usual.map_or(Answer::Nothing, |usual| {
                let choice = answers.into_iter().flat_map(|answers| answers.pins_in(namespace));
                let choice = choice.map(|kind| kind.stack().base().id().clone()).collect();
                Answer::NoSuchPolicy(Arc::clone(usual), choice)
            }),
        }
    }

    /// Returns the policies for the kind of an object: the current policies, or, if a rollout has not moved the object
    /// yet, the policies from before this rollout. Returns `None` if no policy answers for the object.
    pub fn answers_for(&self, of: &ResourceType, namespace: &str, name: &str) -> Option<&Answers> {
        self.answers_in(self.staging.table_for(of, namespace, name), of)
    }

    fn answers_in(&self, table: Table, of: &ResourceType) -> Option<&Answers> {
        match table {
            Table::Current => self.kinds.get(of),
            Table::Before(predecessors) => self.staging.before.get(&predecessors)?.get(of),
            Table::None => None,
        }
    }

    /// Returns the policies for an object without a pin, or `None` if no policy answers.
    pub fn usual_for(&self, of: &ResourceType, namespace: &str, name: &str) -> Option<&Arc<Kind>> {
        self.answers_for(of, namespace, name)?.usual(namespace)
    }

    /// Returns the policies of a place for objects without a pin, as if all rollouts had ended.
    pub(super) fn current_in(&self, of: &ResourceType, namespace: &str) -> Option<&Arc<Kind>> {
        self.kinds.get(of)?.usual(namespace)
    }

    /// Returns the policies of a place for objects without a pin, as if the rollouts in `undone` had not begun.
    pub(super) fn before_in(&self, undone: Predecessors, of: &ResourceType, namespace: &str) -> Option<&Arc<Kind>> {
        self.staging.before.get(&undone)?.get(of)?.usual(namespace)
    }

    /// Returns whether an object has the same policies as in the snapshot `before`.
    pub fn is_as_in(&self, before: &Self, of: &ResourceType, namespace: &str, name: &str) -> bool {
        match [self, before].map(|snapshot| snapshot.answers_for(of, namespace, name)) {
            [Some(now), Some(before)] => now.are_in(namespace, before),
            _ => false,
        }
    }

    /// Returns whether the current policies answer for an object. Returns false if a rollout has not moved the object.
    pub fn is_moved(&self, of: &ResourceType, namespace: &str, name: &str) -> bool {
        self.staging.table_for(of, namespace, name) == Table::Current
    }

    /// Returns the running rollouts.
    pub fn staging(&self) -> &Staging {
        &self.staging
    }

    /// Returns whether the policy for an object is still being loaded. Until the policy is loaded, the operator does
    /// nothing for the object and reports nothing. If the policy answers only for objects that pin it, other objects do
    /// not wait for it.
    pub fn is_loading(&self, object: &Value) -> bool {
        let (of, namespace) = (ResourceType::of_object(object), object["metadata"]["namespace"].as_str());
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let has_table = self.staging.table_for(&of, namespace.unwrap_or_default(), name) != Table::None;
        // If an object pins a policy that is loaded, the object does not wait.
        if !has_table && !matches!(self.answer_for(object), Answer::Kind(_)) {
            return true;
        }
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

    /// Returns for each kind the policies that answer in some place for objects without a pin.
    pub fn active(&self) -> Vec<(ResourceType, PolicyId)> {
        let tables = std::iter::once(&self.kinds).chain(self.staging.tables());
        let ids = |(of, answers): (&ResourceType, &Answers)| {
            let policies =
                answers.usual_everywhere().flat_map(|kind| kind.policies().map(|policy| policy.id().clone()));
            policies.map(|id| (of.clone(), id)).collect::<Vec<_>>()
        };
        let ids: BTreeSet<(ResourceType, PolicyId)> = tables.flatten().flat_map(ids).collect();
        ids.into_iter().collect()
    }

    /// Returns the policies of the snapshot `before` that the snapshot `after` replaces.
    pub(crate) fn replaced(before: &Self, after: &Self) -> Vec<Replaced> {
        let kinds: BTreeSet<&ResourceType> = before.kinds.keys().chain(after.kinds.keys()).collect();
        let none = Answers::default();
        let replaced = kinds.into_iter().flat_map(|of| {
            let [now, then] = [before, after].map(|snapshot| snapshot.kinds.get(of).unwrap_or(&none));
            now.replaced_by(of, then)
        });
        replaced.collect()
    }

    /// Returns every policy that can answer for some object: the policies in a place and the policies that objects can
    /// pin, each with its predecessors.
    pub fn able(&self) -> BTreeSet<PolicyId> {
        let kinds = self.kinds.values().flat_map(Answers::all);
        kinds.flat_map(|kind| kind.policies_ever()).map(|policy| policy.id().clone()).collect()
    }
}

/// Returns whether a pin matches this policy.
fn names(pin: &str, id: &PolicyId) -> bool {
    pin == id.name || is_digest_of(pin, id)
}

/// Returns whether a pin is the digest of this policy.
fn is_digest_of(pin: &str, id: &PolicyId) -> bool {
    let digits = pin.strip_prefix("sha256:").unwrap_or(pin);
    digits.len() >= DIGITS && id.digest.hex().starts_with(digits)
}
