//! Contested names: names of planned children that objects of other owners already have. The operator watches the
//! metadata of the object with the contested name until the name is free. So the operator notices at once that the name
//! is free, and needs no further requests.

use std::collections::{BTreeMap, BTreeSet};

use kaos_objects::{Reference, Target};

use super::{
    cache::Change,
    cached_object::CachedObject,
    needs::named,
    plan::{Select, Spec},
    slot::Slot,
    state::State,
};
use crate::{object_key::Wakes, queue::Urgency};

/// Maximum number of contested names that the operator follows in one namespace. For further names, a pass checks from
/// time to time whether the name is free.
const FOLLOWED_NAMES_PER_NAMESPACE: usize = 64;
/// Maximum number of contested names that the operator follows in all namespaces. If more names are contested, the
/// operator divides this number fairly among the namespaces.
const FOLLOWED_NAMES_LIMIT: usize = 256;

/// Returns the watch that follows a contested name, or `None` if no such watch works.
pub(super) fn rivals<'a>(state: &'a State, name: &Reference) -> Option<&'a Slot> {
    let spec = Spec::new(&name.of(), name.namespace.clone(), Select::Contested(name.name.clone()));
    state.slots.get(&spec).filter(|slot| slot.cache.synced && slot.cache.trouble.is_none())
}

/// Returns a description of the watch for each contested name, within the limits.
pub(super) fn contested_specs(state: &State) -> Vec<Spec> {
    let within = |name: &&Reference| name.namespace.as_deref().is_some_and(|at| state.scope.holds(at));
    let names = state.name_conflicts.all().filter_map(|target| match target {
        Target::Named(name) => Some(name),
        Target::Labelled(_) => None,
    });
    let spec = |name: &Reference| {
        let served = state.served.get(&name.of()).is_some_and(Option::is_some);
        served.then(|| Spec::new(&name.of(), name.namespace.clone(), Select::Contested(name.name.clone())))
    };
    shared_out(names.filter(within).filter_map(spec))
}

/// Returns the objects whose plans contain a child with a contested name, after the object with this name appeared, was
/// deleted, or changed its owner.
pub(super) fn contesters(state: &State, spec: &Spec, change: &Change) -> Wakes {
    let owner = |item: &Option<CachedObject>| item.as_ref().map(|item| item.owner.clone());
    if !matches!(spec.select, Select::Contested(_)) && owner(&change.before) == owner(&change.after) {
        return Wakes::new();
    }
    who_wants(state, spec, &change.namespace, &change.name)
}

/// Returns the objects whose plans contain a child with this type, namespace and name.
pub(super) fn who_wants(state: &State, spec: &Spec, namespace: &str, name: &str) -> Wakes {
    let target = named(&spec.of, Some(namespace), name);
    state.name_conflicts.who(&target).map(|key| (key.clone(), Urgency::Fresh)).collect()
}

/// Limits the number of followed names. The namespaces take turns, and in each turn a namespace adds one name.
fn shared_out(specs: impl Iterator<Item = Spec>) -> Vec<Spec> {
    let mut had: BTreeMap<Option<String>, usize> = BTreeMap::new();
    let mut in_turn: BTreeSet<(usize, Spec)> = BTreeSet::new();
    for spec in specs {
        let turn = had.entry(spec.namespace.clone()).or_default();
        *turn += 1;
        if *turn <= FOLLOWED_NAMES_PER_NAMESPACE {
            in_turn.insert((*turn, spec));
        }
    }
    in_turn.into_iter().map(|(_, spec)| spec).take(FOLLOWED_NAMES_LIMIT).collect()
}

#[cfg(test)]
mod tests {
    use kaos_objects::ResourceType;

    use super::*;

    fn clashes(namespace: usize, count: usize) -> impl Iterator<Item = Spec> {
        let spec = move |name: usize| {
            let select = Select::Contested(format!("c{name}"));
            Spec::new(&ResourceType::new("v1", "ConfigMap"), Some(format!("n{namespace:03}")), select)
        };
        (0..count).map(spec)
    }

    fn followed(specs: &[Spec], namespace: usize) -> usize {
        let at = format!("n{namespace:03}");
        specs.iter().filter(|spec| spec.namespace.as_ref() == Some(&at)).count()
    }

    #[test]
    fn a_namespace_with_many_clashes_takes_no_watch_from_another() {
        let specs = shared_out(clashes(0, 1000).chain(clashes(1, 3)));
        assert_eq!((followed(&specs, 0), followed(&specs, 1)), (FOLLOWED_NAMES_PER_NAMESPACE, 3));
    }

    #[test]
    fn where_all_have_too_many_clashes_each_namespace_has_its_share() {
        let all = (0..20).flat_map(|namespace| clashes(namespace, 100)).chain(clashes(20, 2));
        let specs = shared_out(all);
        assert_eq!((specs.len(), followed(&specs, 20)), (FOLLOWED_NAMES_LIMIT, 2));
        assert!((0..20).all(|namespace| (12..=13).contains(&followed(&specs, namespace))), "{specs:?}");
        assert_eq!(shared_out((0..1000).flat_map(|namespace| clashes(namespace, 1))).len(), FOLLOWED_NAMES_LIMIT);
    }
}
