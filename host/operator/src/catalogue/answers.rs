//! The policies that answer for one kind, by place.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kaos_policy::contract::{Claim, ResourceType};
use serde_json::{Value, json};

use super::Kind;

/// The policies that answer for one kind, by place.
#[derive(Debug, Default)]
pub struct Answers {
    /// The policies for namespaces that the field `namespaces` does not list.
    pub(super) cluster: Option<Arc<Kind>>,
    /// The policies for single namespaces. `None` means that no policy answers in the namespace for now: its policy is
    /// not loaded yet.
    pub(super) namespaces: BTreeMap<String, Option<Arc<Kind>>>,
    /// The policies for objects with a pin, by place, the strongest policy first.
    pub(super) pins: Vec<(Option<String>, Arc<Kind>)>,
    /// The number of the last swap that changed these policies.
    pub since: u64,
    /// The types that the policies for this kind emit, or emitted earlier.
    pub(super) emitted: BTreeSet<ResourceType>,
    /// The policies that answer for objects that rollouts have not moved yet.
    pub(super) yielding: Vec<Arc<Kind>>,
}

/// The policies for one kind in one place, which another policy table would replace. Two values are equal if they point
/// to the same policies in memory. The value keeps these policies alive, so that no later policies can have the same
/// address.
#[derive(Debug, Clone)]
pub(crate) struct Replaced {
    pub(crate) of: ResourceType,
    place: Option<String>,
    kind: Option<Arc<Kind>>,
}

impl Replaced {
    /// Returns a value that identifies the replaced policies, and that is the same in every process.
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

    /// Returns the policies of this table for objects without a pin.
    pub(super) fn usual_everywhere(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.cluster.iter().chain(self.namespaces.values().flatten())
    }

    /// Returns the policies for objects without a pin, and the policies for objects that rollouts have not moved yet.
    pub(super) fn in_place(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.usual_everywhere().chain(&self.yielding)
    }

    /// Returns the policies that an object of this namespace can pin, the strongest first.
    pub(super) fn pins_in(&self, namespace: &str) -> impl Iterator<Item = &Arc<Kind>> {
        let place = self.namespaces.get_key_value(namespace).map(|(place, _)| place);
        self.pins.iter().filter(move |(at, _)| at.as_ref() == place).map(|(_, kind)| kind)
    }

    /// Returns the policies that answer for objects with a pin.
    pub(super) fn pinned(&self) -> impl Iterator<Item = &Kind> {
        self.pins.iter().map(|(_, kind)| &**kind)
    }

    /// Removes each policy for objects with a pin if the function `keeps` returns false for the policy.
    pub(super) fn keep_pinned(&mut self, keeps: impl Fn(&Kind) -> bool) {
        self.pins.retain(|(_, kind)| keeps(kind));
    }

    /// Returns all policies of this table.
    pub(super) fn own(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.usual_everywhere().chain(self.pins.iter().map(|(_, kind)| kind))
    }

    /// Returns all policies that can answer for some object.
    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.in_place().chain(self.pins.iter().map(|(_, kind)| kind))
    }

    /// Returns the claims of all policies that can answer for some object, and of their predecessors.
    pub fn claims(&self) -> impl Iterator<Item = &Claim> {
        self.all().flat_map(|kind| kind.claims_ever())
    }

    /// Returns the types that the policies for this kind emit, or emitted earlier.
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

    /// Returns the policies that `after` replaces, each with its place.
    pub(super) fn replaced_by(&self, of: &ResourceType, after: &Self) -> Vec<Replaced> {
        let in_place = |place: Option<&String>, kind: Option<&Arc<Kind>>| Replaced {
            of: of.clone(),
            place: place.cloned(),
            kind: kind.cloned(),
        };
        // The function `answers_like` ignores fallbacks. So a tenant's policy that only gets another fallback does not
        // count as replaced.
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

    /// Takes over the emitted types of `before`, and its entries that are equal to entries of this table.
    ///
    /// If no entry changed, also takes over `before.since`.
    pub(super) fn keep(&mut self, before: &Self) {
        self.share(before);
        self.emitted.extend(before.emitted.iter().cloned());
        let same = |answers: &Self| answers.own().map(Arc::as_ptr).collect::<Vec<_>>();
        if same(self) == same(before) {
            self.since = before.since;
        }
    }

    /// Replaces each entry by the equal entry of `before`, if there is one. Then the pointers stay the same, and
    /// objects with unchanged policies get no pass.
    pub(super) fn share(&mut self, before: &Self) {
        let keep = |kind: &mut Arc<Kind>, before: Option<&Arc<Kind>>| {
            if let Some(before) = before.filter(|before| before.is(kind)) {
                *kind = Arc::clone(before);
            }
        };
        if let Some(kind) = &mut self.cluster {
            keep(kind, before.cluster.as_ref());
        }
        for (namespace, kind) in &mut self.namespaces {
            // Compare with the policies that answered in this namespace before, even if `before` has no entry for the
            // namespace: the namespace may get its own entry although its policies stay the same.
            if let Some(kind) = kind {
                keep(kind, before.usual(namespace));
            }
        }
        for (place, kind) in &mut self.pins {
            let usual = place.as_ref().filter(|place| before.namespaces.contains_key(*place));
            let old = before.pins.iter().find(|(at, old)| at.as_ref() == usual && old.is(kind));
            keep(kind, old.map(|(_, old)| old));
        }
    }
}
