//! Needed ConfigMaps in a namespace with many label selectors. One watch on the metadata in the namespace replaces the
//! separate watches of the selectors. The watch stores hashes of the labels, and the operator reads each selected
//! object separately.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kaos_objects::Target;

use super::{
    by_label::{Labels, marks},
    cached_object::{Arrived, CachedObject},
    difference::Difference,
    event::Event,
    fetched_objects::Fetched,
    look::Look,
    needs::{Needs, concerned_keys},
    plan::{Select, Spec},
    slot::{Handle, Slot},
    state::State,
};
use crate::{
    object_key::{ObjectKey, Wakes},
    queue::Urgency,
};

/// Returns the objects with these labels that the watch knows.
pub(super) fn with_labels(slot: &Slot, labels: &Labels) -> Look {
    let mut found = Vec::new();
    for name in slot.labels.matching(labels) {
        match slot.fetched.get(&name) {
            None => return Look::Pending,
            Some(Fetched::Forbidden(why)) => return Look::Forbidden(why.clone()),
            Some(Fetched::Object(item)) if item.carries(labels) => found.push((item.text().clone(), item.version)),
            Some(Fetched::Object(_) | Fetched::Absent | Fetched::Secret(_)) => {}
        }
    }
    Look::Objects(found)
}

/// Returns the readers that the change of an object concerns, if their selectors match the object's current labels.
fn selecting(state: &State, spec: &Spec, name: &str, difference: &Difference<'_>) -> BTreeSet<ObjectKey> {
    let Some(slot) = state.slots.get(spec) else { return BTreeSet::new() };
    let selectors = state.needs.selectors(&spec.of, spec.namespace.as_deref());
    let selecting = selectors.filter(|(selector, _)| slot.labels.carries(name, &selector.labels));
    selecting.flat_map(|(_, readers)| concerned_keys(readers, difference)).map(|key| ObjectKey::clone(key)).collect()
}

/// Returns all readers whose selectors match an object's current labels.
fn all_selecting(state: &State, spec: &Spec, name: &str) -> BTreeSet<ObjectKey> {
    selecting(state, spec, name, &Difference::unknown())
}

/// Returns whether an object is needed, by name or by labels.
pub(super) fn is_wanted(state: &State, spec: &Spec, name: &str) -> bool {
    let is_selected = |slot: &Slot| {
        let mut selectors = state.needs.selectors(&spec.of, spec.namespace.as_deref());
        selectors.any(|(selector, _)| slot.labels.carries(name, &selector.labels))
    };
    is_named(state, spec, name) || state.slots.get(spec).is_some_and(is_selected)
}

fn is_named(state: &State, spec: &Spec, name: &str) -> bool {
    state.needs.is_needed(&spec.of, spec.namespace.as_deref().unwrap_or_default(), name)
}

/// Returns the hashes of all labels in the selectors for the objects of a watch.
fn named_labels(needs: &Needs, spec: &Spec) -> BTreeSet<u64> {
    let selectors = needs.selectors(&spec.of, spec.namespace.as_deref());
    selectors.flat_map(|(selector, _)| marks(&selector.labels)).collect()
}

/// Applies an event of the watch.
pub(super) fn labelled_event(state: &mut State, handle: &Handle, event: &Event) -> Wakes {
    let (name, version, item) = match event {
        Event::Is(arrived) => (&arrived.name, arrived.item.version, Some(&arrived.item)),
        Event::Gone(arrived) => (&arrived.name, arrived.item.version, None),
        Event::Bookmark(_) => return Wakes::new(),
    };
    relabelled(state, handle, name, version, item)
}

/// Applies new labels of an object, or its deletion (`None`). If the selectors of a reader no longer select the object,
/// wakes the reader at once. If the selectors of a reader select the object now, the reader wakes after the operator
/// has read the object.
fn relabelled(state: &mut State, handle: &Handle, name: &Arc<str>, version: u64, item: Option<&CachedObject>) -> Wakes {
    let spec = &*handle.spec;
    let (before, is_named) = (all_selecting(state, spec, name), is_named(state, spec, name));
    let Some(slot) = state.slot(handle) else { return Wakes::new() };
    let is_news = match item {
        Some(item) => slot.labels.put(name, item),
        None => slot.labels.gone(name, version),
    };
    if !is_news {
        return Wakes::new();
    }
    let after = all_selecting(state, spec, name);
    let mut woken: BTreeSet<ObjectKey> = before.difference(&after).cloned().collect();
    let Some(slot) = state.slot(handle) else { return Wakes::new() };
    let mut changed = false;
    if item.is_some() && (is_named || !after.is_empty()) {
        if slot.fetched.version(name, version) {
            slot.wake_task.notify_one();
        }
        if slot.fetched.has(name, version) {
            woken.extend(after);
        }
    } else if is_named {
        changed = slot.fetched.gone(name, version);
    } else {
        slot.fetched.forget(name);
    }
    let mut wakes: Wakes = woken.into_iter().map(|key| (key, Urgency::Fresh)).collect();
    if changed {
        wakes.extend(state.concerned(spec, name, &Difference::unknown()));
    }
    wakes
}

/// Applies a list. `version` is the resource version of the list. `named` contains the names that are needed.
pub(super) fn labelled_relist(
    state: &mut State,
    handle: &Handle,
    listed: &[Arrived],
    version: u64,
    named: &BTreeSet<Arc<str>>,
) -> Wakes {
    let spec = &*handle.spec;
    let Some(slot) = state.slots.get_mut(spec).filter(|slot| slot.id == handle.id) else { return Wakes::new() };
    let mut wakes = Wakes::new();
    if slot.labels.of_name.is_empty() {
        slot.labels.index(&named_labels(&state.needs, spec));
        for arrived in listed {
            slot.labels.put(&arrived.name, &arrived.item);
        }
        for (selector, _) in state.needs.selectors(&spec.of, spec.namespace.as_deref()) {
            for name in slot.labels.matching(&selector.labels) {
                slot.fetched.want(&name);
            }
        }
    } else {
        let vanished = slot.labels.vanished(listed, version);
        for arrived in listed {
            wakes.extend(relabelled(state, handle, &arrived.name, arrived.item.version, Some(&arrived.item)));
        }
        for name in vanished {
            wakes.extend(relabelled(state, handle, &name, version, None));
        }
    }
    let Some(slot) = state.slot(handle) else { return wakes };
    let changed = slot.fetched.relist(listed, version, named);
    slot.wake_task.notify_one();
    for name in changed {
        wakes.extend(state.concerned(spec, &name, &Difference::unknown()));
    }
    wakes
}

/// Updates the state with the answer that the API server gave to a read of a needed object.
pub(super) fn labelled_fetched(
    state: &mut State,
    handle: &Handle,
    name: &Arc<str>,
    version: u64,
    answer: &Fetched,
) -> Wakes {
    let spec = &*handle.spec;
    let (selected_before, is_named) = (all_selecting(state, spec, name), is_named(state, spec, name));
    let Some(slot) = state.slot(handle) else { return Wakes::new() };
    // Ignore the answer if the watch does not know the object: it was deleted, or an event will soon report it.
    if let Fetched::Object(item) = answer
        && slot.labels.of_name.contains_key(name)
    {
        slot.labels.put(name, item);
    }
    let selected_after = all_selecting(state, spec, name);
    let is_wanted = is_named || !selected_after.is_empty();
    let Some(slot) = state.slot(handle) else { return Wakes::new() };
    let before = slot.fetched.get(name).cloned();
    let changed = if is_wanted {
        slot.fetched.fetched(name, version, answer.clone())
    } else {
        slot.fetched.forget(name);
        true
    };
    if !changed {
        return Wakes::new();
    }
    let difference = Difference::fetched(before.as_ref(), answer);
    let mut concerned: BTreeSet<ObjectKey> = selected_before.symmetric_difference(&selected_after).cloned().collect();
    concerned.extend(selecting(state, spec, name, &difference));
    let mut wakes: Wakes = concerned.into_iter().map(|key| (key, Urgency::Fresh)).collect();
    wakes.extend(state.concerned(spec, name, &difference));
    wakes
}

/// Returns the description of the metadata watch that can answer for a target.
fn wide(target: &Target) -> Spec {
    Spec::new(&target.of(), target.namespace().map(str::to_owned), Select::Wide)
}

/// Records targets that became needed or unneeded. Checks each concerned object only once, and not once for each
/// target, because hundreds of selectors may change together.
pub(super) fn needs_changed(state: &mut State, changed: &[Arc<Target>]) {
    let concerned: BTreeSet<Spec> = changed.iter().map(|target| wide(target)).collect();
    for spec in concerned {
        if let Some(slot) = state.slots.get_mut(&spec).filter(|slot| !slot.labels.of_name.is_empty()) {
            slot.labels.index(&named_labels(&state.needs, &spec));
        }
    }
    // For each object, whether a new need selects the object.
    let mut concerned: BTreeMap<Spec, BTreeMap<Arc<str>, bool>> = BTreeMap::new();
    for target in changed {
        let is_needed = state.needs.who(target).next().is_some();
        let spec = wide(target);
        let Some(slot) = state.slots.get(&spec) else { continue };
        let names: Vec<Arc<str>> = match &**target {
            Target::Named(reference) => vec![reference.name.as_str().into()],
            Target::Labelled(selector) => slot.labels.matching(&selector.labels),
        };
        let names_of = concerned.entry(spec).or_default();
        for name in names {
            *names_of.entry(name).or_default() |= is_needed;
        }
    }
    for (spec, names) in concerned {
        let selectors = state.needs.selectors(&spec.of, spec.namespace.as_deref());
        let selectors: Vec<Vec<u64>> = selectors.map(|(selector, _)| marks(&selector.labels)).collect();
        let is_wanted = |name: &str| {
            let is_selected = |slot: &Slot| slot.labels.is_selected(name, &selectors);
            is_named(state, &spec, name) || state.slots.get(&spec).is_some_and(is_selected)
        };
        let decided: Vec<(Arc<str>, bool)> = names
            .into_iter()
            .map(|(name, is_needed)| {
                let keep = is_needed || is_wanted(&name);
                (name, keep)
            })
            .collect();
        let Some(slot) = state.slots.get_mut(&spec) else { continue };
        for (name, keep) in decided {
            if keep {
                slot.fetched.want(&name);
                slot.wake_task.notify_one();
            } else {
                slot.fetched.forget(&name);
            }
        }
    }
}

#[cfg(test)]
mod tests;
