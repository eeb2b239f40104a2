//! Adjusts the set of watches to coverage, discovery and needs.

use std::{collections::BTreeMap, sync::Arc};

use kaos_objects::{ResourceType, Target};

use super::{
    cached_object::{Extract, StoredForm},
    coverage::{Manner, is_guarded},
    discovery::{Discovered, Served},
    name_conflicts,
    owners::ChildPlace,
    plan::{self, Select, Spec},
    slot::{Handle, Slot},
    state::State,
};
use crate::{
    object_key::{ObjectKey, Wakes},
    queue::Urgency,
};

/// Applies the result of discovery. Returns the objects to wake.
pub(super) fn discovered(state: &mut State, found: Discovered, failed: BTreeMap<String, String>) -> Wakes {
    state.undiscovered = failed;
    state.changes += 1;
    let mut wakes = Wakes::new();
    let mut changed = Vec::new();
    for (of, served) in found {
        if state.served.get(&of) == Some(&served) {
            continue;
        }
        let gone: Vec<Spec> = state.slots_of(&of).map(|(spec, _)| spec.clone()).collect();
        for spec in gone {
            wakes.extend(drop_slot(state, &spec));
        }
        state.owners.forget_strays_of(&of);
        state.served.insert(of.clone(), served);
        changed.push(of);
    }
    // Do not wake objects of a newly served type here, because the first list reports them.
    plan(state);
    for of in changed {
        wakes.extend(state.claimers(&of));
    }
    wakes
}

/// Adjusts the watches to coverage, discovery and needs. Returns the watches to run.
pub(super) fn plan(state: &mut State) -> Vec<Handle> {
    let desired = desired(state);
    let differs = |spec: &Spec, slot: &Slot| desired.get(spec).is_none_or(|extract| *extract != slot.extract);
    let gone: Vec<Spec> =
        state.slots.iter().filter(|(spec, slot)| differs(spec, slot)).map(|(spec, _)| spec.clone()).collect();
    for spec in gone {
        drop_slot(state, &spec);
    }
    for (spec, extract) in desired {
        let of = Arc::new(spec.of.clone());
        let dictionary = Arc::clone(state.dictionaries.entry(spec.of.clone()).or_default());
        let last_id = &mut state.last_id;
        state.slots.entry(spec).or_insert_with(|| {
            *last_id += 1;
            let (cache, fetched, labels, wake_task) = Default::default();
            Slot { id: *last_id, of, extract, dictionary, cache, fetched, labels, wake_task }
        });
    }
    let State { slots, dictionaries, .. } = state;
    dictionaries.retain(|of, _| slots.keys().any(|spec| spec.of == *of));
    let handle = |(spec, slot): (&Spec, &Slot)| {
        let served = state.served.get(&spec.of)?.clone()?;
        let (dictionary, wake_task) = (Arc::clone(&slot.dictionary), Arc::clone(&slot.wake_task));
        Some(Handle { spec: Arc::new(spec.clone()), id: slot.id, served, extract: slot.extract, dictionary, wake_task })
    };
    state.slots.iter().filter_map(handle).collect()
}

fn desired(state: &State) -> BTreeMap<Spec, Extract> {
    let mut desired = BTreeMap::new();
    for of in state.coverage.types() {
        let Some(Some(served)) = state.served.get(&of) else { continue };
        for manner in state.coverage.manners(&of) {
            match manner {
                Manner::Whole => desired.extend(stores(state, &of, served, &Select::Whole)),
                Manner::Own => desired.extend(stores(state, &of, served, &Select::Own)),
                Manner::AsNeeded => desired.extend(needed_specs(state, &of)),
            }
        }
    }
    desired.extend(name_conflicts::contested_specs(state).into_iter().map(|spec| (spec, Extract::default())));
    desired
}

fn stores(state: &State, of: &ResourceType, served: &Served, select: &Select) -> Vec<(Spec, Extract)> {
    let places = state.scope.places(served.namespaced).into_iter();
    let extract = extract(state, of, select);
    places.map(|place| (Spec::new(of, place, select.clone()), extract)).collect()
}

fn needed_specs(state: &State, of: &ResourceType) -> Vec<(Spec, Extract)> {
    if of.is_secret() && !state.secrets {
        return Vec::new();
    }
    let within = |target: &&Target| target.namespace().is_some() && state.reaches(target);
    let wide = |at: &str| state.slots.get(&Spec::new(of, Some(at.to_owned()), Select::Wide)).map(|slot| slot.extract);
    // In namespaces outside the scope, the operator has only the right to read single objects by name.
    let most = |at: &str| if state.scope.holds(at) { state.most_named } else { usize::MAX };
    plan::as_needed(of, state.needs.of_type(of).filter(within), most, wide)
}

fn extract(state: &State, of: &ResourceType, select: &Select) -> Extract {
    let labels = *select == Select::Whole && state.coverage.is_read(of) && !is_guarded(of);
    Extract { labels, essence: state.coverage.is_primary(of), shared: *select == Select::Own, form: StoredForm::Whole }
}

/// Drops the objects of a watch.
///
/// Returns the dropped objects of claimed kinds, so that the caller wakes them: from now on, lookups treat them as
/// deleted.
fn drop_slot(state: &mut State, spec: &Spec) -> Wakes {
    let Some(slot) = state.slots.remove(spec) else { return Wakes::new() };
    let mut wakes = Wakes::new();
    let primary = state.coverage.is_primary(&spec.of);
    for (namespace, name, item) in slot.cache.iter(None).filter(|_| spec.is_store()) {
        if let Some(owner) = &item.owner {
            let (namespace, name) = (Arc::clone(namespace), Arc::clone(name));
            let place = ChildPlace { of: Arc::clone(&slot.of), namespace, name };
            state.owners.moved(&place, Some(owner), None);
        }
        if primary {
            wakes.push((ObjectKey::new(spec.of.clone(), &**namespace, &**name), Urgency::Bulk));
        }
    }
    wakes
}
