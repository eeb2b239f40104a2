//! Updates the state from watch events, from lists, and from the answers that the operator's own writes get. Finds the
//! objects to wake.

use std::{collections::BTreeSet, sync::Arc};

use kaos_objects::{ResourceType, metadata};
use serde_json::Value;
use tokio::time::Instant;

use super::{
    cache::Change,
    cached_object::{Arrived, Extract},
    difference::Difference,
    event::Event,
    fetched_objects::Fetched,
    name_conflicts,
    owners::{ChildPlace, Stray},
    plan::{Select, Spec},
    selected,
    slot::Handle,
    state::State,
    watch_error::WatchError,
};
use crate::{
    object_key::{ObjectKey, Wakes},
    queue::Urgency,
};

/// Applies an event of a watch.
pub(super) fn event(state: &mut State, handle: &Handle, event: Event) -> Wakes {
    let spec = &*handle.spec;
    if spec.by_metadata() {
        return metadata_event(state, handle, &event);
    }
    let Some(slot) = state.slot(handle) else { return Wakes::new() };
    let change = match event {
        Event::Is(arrived) => slot.cache.event(arrived),
        Event::Gone(arrived) => slot.cache.gone(&arrived),
        Event::Bookmark(version) => {
            slot.cache.bookmark(version);
            None
        }
    };
    let mut wakes = Wakes::new();
    if let Some(change) = change {
        note(state, spec, &change, false, &mut wakes);
    }
    wakes
}

fn metadata_event(state: &mut State, handle: &Handle, event: &Event) -> Wakes {
    let spec = &*handle.spec;
    let (Event::Is(arrived) | Event::Gone(arrived)) = event else {
        if let (Event::Bookmark(version), Some(slot)) = (event, state.slot(handle)) {
            slot.cache.bookmark(*version);
        }
        return Wakes::new();
    };
    let needed = state.needs.is_needed(&spec.of, &arrived.namespace, &arrived.name);
    let Some(slot) = state.slot(handle) else { return Wakes::new() };
    slot.cache.bookmark(arrived.item.version);
    if handle.extract.labels {
        return selected::labelled_event(state, handle, event);
    }
    let changed = match event {
        _ if !needed => false,
        Event::Gone(_) => slot.fetched.gone(&arrived.name, arrived.item.version),
        _ => {
            if slot.fetched.version(&arrived.name, arrived.item.version) {
                slot.wake_task.notify_one();
            }
            false
        }
    };
    if changed { state.concerned(spec, &arrived.name, &Difference::unknown()) } else { Wakes::new() }
}

/// Returns whether the cache already contains this version of an object, or a newer one.
pub(super) fn knows(state: &mut State, handle: &Handle, namespace: &str, name: &str, version: u64) -> bool {
    let known = state.slot(handle).and_then(|slot| slot.cache.get(namespace, name));
    known.is_some_and(|item| item.version >= version)
}

/// Applies a complete list. `version` is the resource version of the list.
pub(super) fn relist(state: &mut State, handle: &Handle, listed: Vec<Arrived>, version: u64) -> Wakes {
    let spec = &*handle.spec;
    let needed = if spec.by_metadata() { state.needed(spec) } else { BTreeSet::new() };
    let Some(slot) = state.slot(handle) else { return Wakes::new() };
    let first = !std::mem::replace(&mut slot.cache.synced, true);
    let healed = slot.cache.heal();
    let mut wakes = Wakes::new();
    if spec.by_metadata() {
        slot.cache.relist(Vec::new(), version);
        wakes.extend(metadata_list(state, handle, &listed, version, &needed));
    } else {
        for change in slot.cache.relist(listed, version) {
            note(state, spec, &change, first, &mut wakes);
        }
    }
    if first && let Some(slot) = state.slot(handle) {
        slot.wake_task.notify_one();
    }
    if first || healed {
        wakes.extend(answered(state, spec));
    }
    wakes
}

fn metadata_list(
    state: &mut State,
    handle: &Handle,
    listed: &[Arrived],
    version: u64,
    needed: &BTreeSet<Arc<str>>,
) -> Wakes {
    if handle.extract.labels {
        return selected::labelled_relist(state, handle, listed, version, needed);
    }
    let Some(slot) = state.slot(handle) else { return Wakes::new() };
    let changed = slot.fetched.relist(listed, version, needed);
    slot.wake_task.notify_one();
    changed.iter().flat_map(|name| state.concerned(&handle.spec, name, &Difference::unknown())).collect()
}

/// Records the error of a watch, or `None` when the watch works again. If the API server refused the watch before the
/// first list, the error of a later outage does not replace this refusal: a restart of the server gives the operator no
/// rights. Cached objects stay readable during an outage, and during the first minute of refusals. Metrics and
/// readiness report the error at once.
pub(super) fn set_trouble(state: &mut State, handle: &Handle, broken: Option<&WatchError>) -> Wakes {
    state.changes += 1;
    let Some(slot) = state.slot(handle) else { return Wakes::new() };
    if slot.cache.is_refused() && !slot.cache.synced && broken.is_some_and(WatchError::is_outage) {
        return Wakes::new();
    }
    let turned = slot.cache.set_trouble(broken, Instant::now());
    if turned { answered(state, &handle.spec) } else { Wakes::new() }
}

/// Records that the API server refuses to return a needed object. Lookups return the last known content until `lasts`
/// is true: the server has refused the reads for some time.
pub(super) fn unreadable(state: &mut State, handle: &Handle, name: &Arc<str>, why: &str, lasts: bool) -> Wakes {
    if !lasts && state.slot(handle).is_some_and(|slot| slot.fetched.is_known(name)) {
        return Wakes::new();
    }
    fetched(state, handle, name, 0, &Fetched::Forbidden(why.to_owned()))
}

/// Updates the state with the answer that the API server gave to a read of a needed object.
pub(super) fn fetched(state: &mut State, handle: &Handle, name: &Arc<str>, version: u64, answer: &Fetched) -> Wakes {
    if handle.extract.labels && handle.spec.by_metadata() {
        return selected::labelled_fetched(state, handle, name, version, answer);
    }
    let namespace = handle.spec.namespace.as_deref().unwrap_or_default();
    if !state.needs.is_needed(&handle.spec.of, namespace, name) {
        return Wakes::new();
    }
    let Some(slot) = state.slot(handle) else { return Wakes::new() };
    let before = slot.fetched.get(name).cloned();
    if !slot.fetched.fetched(name, version, answer.clone()) {
        return Wakes::new();
    }
    state.concerned(&handle.spec, name, &Difference::fetched(before.as_ref(), answer))
}

/// Records a child without the operator's label that the sweep found.
pub(super) fn swept(state: &mut State, handle: &Handle, object: &Value) -> Wakes {
    let of = &handle.spec.of;
    let Some(owner) = super::cached_object::owner_of(object) else { return Wakes::new() };
    let emits =
        |primary: &&ResourceType| state.coverage.claimed(primary).is_some_and(|claimed| claimed.emits.contains(of));
    let Some(primary) = state.coverage.primary_of(&owner.of).filter(emits).cloned() else { return Wakes::new() };
    let Ok(arrived) = Arrived::new(object.clone(), of, Extract::default()) else { return Wakes::new() };
    let Some(slot) = state.slot(handle) else { return Wakes::new() };
    if slot.cache.get(&arrived.namespace, &arrived.name).is_some() {
        return Wakes::new();
    }
    let key = ObjectKey::new(primary, &*arrived.namespace, owner.name);
    let place = ChildPlace { of: Arc::clone(&slot.of), namespace: arrived.namespace, name: arrived.name };
    let (uid, version) = (arrived.item.uid, arrived.item.version);
    state.owners.stray(place, Stray { uid, version, owner: owner.uid.into() });
    vec![(key, Urgency::Bulk)]
}

/// Applies the answer to a write of the operator. The pass over the child's owner wrote the child, so the owner is not
/// woken. Other objects that need the child are woken. If the object has a claimed kind, the answer may contain a
/// change that a user made after the pass began. That pass did not see the user's change, so this function treats the
/// answer like an event.
pub(super) fn wrote(state: &mut State, object: &Value) -> Wakes {
    let mut wakes = Wakes::new();
    let Some(key) = ObjectKey::of_object(object) else { return wakes };
    let Some(spec) = state.store(&key.of, &key.namespace).map(|(spec, _)| spec.clone()) else { return wakes };
    if spec.select == Select::Own && object["metadata"]["labels"][metadata::MANAGED_BY] != metadata::MANAGER {
        return wakes;
    }
    let change = state.slots.get_mut(&spec).and_then(|slot| {
        let arrived = Arrived::new(object.clone(), &key.of, slot.extract).ok()?;
        slot.cache.wrote(arrived.packed(&slot.dictionary))
    });
    if let Some(change) = change {
        let quietly = !state.coverage.is_primary(&key.of);
        note(state, &spec, &change, quietly, &mut wakes);
    }
    wakes
}

/// Removes an object from the cache after the operator deleted the object.
pub(super) fn deleted(state: &mut State, of: &ResourceType, namespace: &str, name: &str, uid: &str) -> Wakes {
    let mut wakes = Wakes::new();
    let Some((spec, slot)) = state.store(of, namespace).map(|(spec, slot)| (spec.clone(), slot)) else {
        return wakes;
    };
    let place = ChildPlace { of: Arc::clone(&slot.of), namespace: namespace.into(), name: name.into() };
    if state.owners.stray_at(&place).is_some_and(|stray| *stray.uid == *uid) {
        state.owners.forget_stray(&place);
    }
    let change = state.slots.get_mut(&spec).and_then(|slot| slot.cache.deleted(namespace, name, uid));
    if let Some(change) = change {
        note(state, &spec, &change, true, &mut wakes);
    }
    wakes
}

/// Applies a change of an object: updates the owner index, and collects the objects that must wake.
fn note(state: &mut State, spec: &Spec, change: &Change, quietly: bool, wakes: &mut Wakes) {
    let of = &spec.of;
    let namespace = &*change.namespace;
    let place = state.slots.get(spec).filter(|_| spec.is_store()).map(|slot| {
        let (namespace, name) = (Arc::clone(&change.namespace), Arc::clone(&change.name));
        ChildPlace { of: Arc::clone(&slot.of), namespace, name }
    });
    if let Some(place) = &place {
        if change.after.is_some() {
            state.owners.forget_stray(place);
        }
        let owner = |item: Option<&super::cached_object::CachedObject>| item.and_then(|item| item.owner.clone());
        let (before, after) = (owner(change.before.as_ref()), owner(change.after.as_ref()));
        state.owners.moved(place, before.as_deref(), after.as_deref());
    }
    if !change.is_visible() {
        return;
    }
    if !quietly && spec.select == Select::Whole && state.coverage.is_primary(of) && change.is_essential() {
        wakes.push((ObjectKey::new(of.clone(), namespace, &*change.name), Urgency::Fresh));
    }
    if let Some(place) = place.filter(|_| !quietly && state.coverage.is_emitted(of)) {
        let version = change.after.as_ref().map_or(0, |item| item.version);
        let owners = owners_of(state, of, change);
        wakes.extend(state.in_flight.hold(&place, version, owners));
    }
    wakes.extend(name_conflicts::contesters(state, spec, change));
    if !matches!(spec.select, Select::Own | Select::Contested(_)) && state.coverage.is_read(of) {
        let difference = Difference::new(change.before.as_ref(), change.after.as_ref());
        let keys = state.needs.concerned(of, namespace, &change.name, &difference, |target| spec.answers(target));
        wakes.extend(keys.into_iter().map(|key| (key, Urgency::Fresh)));
    }
}

/// Returns the owners of an object. Leaves out an owner if plans for its kind cannot contain the type of the object.
fn owners_of(state: &State, of: &ResourceType, change: &Change) -> Wakes {
    let key = |owner: super::cached_object::Owner| {
        let primary = state.coverage.primary_of(&owner.of)?;
        let emits = state.coverage.claimed(primary).is_some_and(|claimed| claimed.emits.contains(of));
        emits.then(|| (ObjectKey::new(primary.clone(), &*change.namespace, owner.name), Urgency::Fresh))
    };
    change.owners().into_iter().filter_map(key).collect()
}

/// Returns the objects to wake after a watch got its first answer, recovered, or lost its rights.
fn answered(state: &State, spec: &Spec) -> Wakes {
    if spec.is_store() {
        return state.claimers(&spec.of);
    }
    if let Select::Contested(name) = &spec.select {
        return name_conflicts::who_wants(state, spec, spec.namespace.as_deref().unwrap_or_default(), name);
    }
    let targets = state.needs.of_type(&spec.of).filter(|target| spec.answers(target));
    targets.flat_map(|target| state.needs.who(target)).map(|key| (key.clone(), Urgency::Fresh)).collect()
}

/// Returns the name of the next needed object to read, and the minimum version that the read must return. `None` if no
/// object must be read.
pub(super) fn next_to_read(state: &mut State, handle: &Handle) -> Option<(Arc<str>, u64)> {
    state.slot(handle)?.fetched.take()
}

/// Schedules another read of the needed objects in `failed`, whose last reads failed.
pub(super) fn read_again(state: &mut State, handle: &Handle, failed: &[(Arc<str>, u64)]) {
    let is_needed = |(name, _): &&(Arc<str>, u64)| selected::is_wanted(state, &handle.spec, name);
    let needed: Vec<_> = failed.iter().filter(is_needed).cloned().collect();
    let Some(slot) = state.slot(handle) else { return };
    for (name, version) in &needed {
        slot.fetched.read_again(name, *version);
    }
    slot.wake_task.notify_one();
}
