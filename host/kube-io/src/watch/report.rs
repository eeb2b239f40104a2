//! The state of the watches for metrics and readiness.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Mutex,
};

use kaos_objects::ResourceType;

use super::{plan::Spec, slot::Slot, state::State};
use crate::{
    locking::lock,
    metrics::{IoMetrics, WatchState},
};

/// Facts about a namespace that the scope lists.
#[derive(Default)]
struct Sight {
    /// Whether the API server accepts at least one watch in the namespace.
    is_open: bool,
    /// Whether at least one type was listed in the namespace.
    was_listed: bool,
}

/// Returns the state of the watches on a type. Ignores the namespaces in `barred`.
fn doing(state: &State, of: &ResourceType, barred: &BTreeSet<String>) -> WatchState {
    let foreign = state.foreign.values().filter(|other| other.of == *of).map(|other| other.state);
    let own = state.coverage.types().contains(of).then(|| own_doing(state, of, barred));
    own.into_iter().chain(foreign).max_by_key(|state| rank(*state)).unwrap_or(WatchState::Synced)
}

fn own_doing(state: &State, of: &ResourceType, barred: &BTreeSet<String>) -> WatchState {
    match state.served.get(of) {
        None => return if state.undiscovered.is_empty() { WatchState::Listing } else { WatchState::Failing },
        Some(None) => return WatchState::Unserved,
        Some(Some(_)) => {}
    }
    let elsewhere = state.slots_of(of).filter(|(spec, _)| is_outside(spec, barred));
    let states = elsewhere.map(|(_, slot)| match &slot.cache.trouble {
        Some(trouble) if trouble.forbidden => WatchState::Forbidden,
        Some(_) => WatchState::Failing,
        None if slot.cache.synced => WatchState::Synced,
        None => WatchState::Listing,
    });
    // If no object needs the type now, the type has no watches, and its state is synced.
    states.max_by_key(|state| rank(*state)).unwrap_or(WatchState::Synced)
}

/// Returns the barred namespaces: the scope lists these namespaces, but the operator can read nothing in them, and can
/// read in other namespaces. Usually such a namespace was deleted together with its Roles. If the operator can now read
/// in none of the namespaces whose objects it listed before, this function returns only the namespaces whose objects it
/// never listed. Readiness then waits for the rights in all other namespaces, because a starting server may refuse
/// everything for a while.
pub(super) fn barred(state: &State) -> BTreeSet<String> {
    let mut sights: BTreeMap<&str, Sight> = BTreeMap::new();
    for (namespace, slot) in listed_stores(state) {
        let sight = sights.entry(namespace).or_default();
        sight.is_open |= !slot.cache.is_refused();
        sight.was_listed |= slot.cache.synced;
    }
    let is_seen = sights.values().any(|sight| sight.is_open && sight.was_listed);
    let was_seen = sights.values().any(|sight| sight.was_listed);
    let is_barred = |sight: &Sight| !sight.is_open && (is_seen || (was_seen && !sight.was_listed));
    let barred = sights.iter().filter(|(_, sight)| is_barred(sight));
    barred.map(|(namespace, _)| (*namespace).to_owned()).collect()
}

/// Returns whether the API server refuses every watch in a namespace.
pub(super) fn is_barred(state: &State, namespace: &str) -> bool {
    let mut here = listed_stores(state).filter(|(at, _)| *at == namespace).peekable();
    here.peek().is_some() && here.all(|(_, slot)| slot.cache.is_refused())
}

/// Returns the stores of single namespaces. A store of a single namespace exists only if the scope lists namespaces.
fn listed_stores(state: &State) -> impl Iterator<Item = (&str, &Slot)> {
    let stores = state.slots.iter().filter(|(spec, _)| spec.is_store());
    stores.filter_map(|(spec, slot)| Some((spec.namespace.as_deref()?, slot)))
}

/// Returns the reason why a served type was never listed, or `None` if the type was listed. Ignores the namespaces in
/// `barred`.
pub(super) fn refused(state: &State, of: &ResourceType, barred: &BTreeSet<String>) -> Option<String> {
    let counts = |spec: &Spec| spec.is_store() && is_outside(spec, barred);
    let lacking = state.slots_of(of).filter(|(spec, slot)| counts(spec) && !slot.cache.synced);
    let mut troubles = lacking.filter_map(|(_, slot)| slot.cache.trouble.as_ref());
    troubles.next().map(|trouble| format!("{of}: {}", trouble.text))
}

/// Returns the types that the operator listed before, but that the API server does not let the operator watch now. The
/// cached objects of these types become outdated. Ignores the namespaces in `barred`.
pub(super) fn lost(state: &State, barred: &BTreeSet<String>) -> Vec<String> {
    let counts = |spec: &Spec| spec.is_store() && is_outside(spec, barred) && !state.coverage.is_kept(&spec.of);
    let refused =
        state.slots.iter().filter(|(spec, slot)| counts(spec) && slot.cache.synced && slot.cache.is_refused());
    let told = |(spec, slot): (&Spec, &Slot)| {
        slot.cache
            .trouble
            .as_ref()
            .map(|trouble| format!("{spec}: {}; the cached objects are getting out of date", trouble.text))
    };
    refused.filter_map(told).collect()
}

/// Returns whether the operator already logged an error of this watch, or of another watch of the same type outside
/// barred namespaces.
pub(super) fn is_told(state: &State, of: &Spec) -> bool {
    let barred = barred(state);
    let mut troubled = state.slots_of(&of.of).filter(|(_, slot)| slot.cache.trouble.is_some());
    state.undiscovered.contains_key(&of.of.api_version)
        || troubled.any(|(spec, _)| spec == of || is_outside(spec, &barred))
}

/// Returns the number of cached objects of a type, and the bytes that their texts take.
pub(super) fn stored(state: &State, of: &ResourceType) -> (usize, usize) {
    let items = state.slots_of(of).flat_map(|(_, slot)| slot.cache.iter(None));
    items.fold((0, 0), |(objects, bytes), (.., item)| (objects + 1, bytes + item.text().stored()))
}

/// Returns the severity of a state. If a type has several watches, the metric shows the worst state.
fn rank(state: WatchState) -> u8 {
    match state {
        WatchState::Synced => 0,
        WatchState::Listing => 1,
        WatchState::Unserved => 2,
        WatchState::Failing => 3,
        WatchState::Forbidden => 4,
    }
}

/// Returns whether a watch covers objects outside of these namespaces.
fn is_outside(spec: &Spec, namespaces: &BTreeSet<String>) -> bool {
    spec.namespace.as_ref().is_none_or(|at| !namespaces.contains(at))
}

/// The types in the last report. The next report removes the metrics of types that the operator no longer watches.
#[derive(Debug, Default)]
pub(super) struct Reported(Mutex<BTreeSet<ResourceType>>);

impl Reported {
    /// Updates the metrics.
    pub(super) fn report(&self, state: &State, metrics: &dyn IoMetrics) {
        let (mut types, barred) = (state.coverage.types(), barred(state));
        types.extend(state.foreign.values().map(|other| other.of.clone()));
        metrics.barred(barred.len());
        for of in &types {
            let (objects, bytes) = stored(state, of);
            metrics.watch(of, Some(doing(state, of, &barred)));
            metrics.stored(of, objects, bytes);
        }
        let mut before = lock(&self.0);
        for of in before.difference(&types) {
            metrics.watch(of, None);
            metrics.stored(of, 0, 0);
        }
        *before = types;
    }
}
