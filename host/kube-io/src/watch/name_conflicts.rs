//! Names that an object wants for a child and that another owner has. The operator follows their metadata until they
//! are free. So a conflict ends as soon as the name is free, and costs no requests meanwhile.

use std::collections::{BTreeMap, BTreeSet};

use kaos_objects::{Reference, Target};
use serde_json::Value;

use super::{
    Watch,
    cache::Change,
    cached_object::CachedObject,
    needs::named,
    plan::{Select, Spec},
    slot::Slot,
    state::State,
};
use crate::{
    object_key::{ObjectKey, Wakes},
    queue::Urgency,
};

/// Maximum number of followed names in one namespace. The pass checks further names from time to time.
const FOLLOWED_NAMES_PER_NAMESPACE: usize = 64;
/// Maximum number of followed names in all namespaces. Beyond it, the namespaces share the number.
const FOLLOWED_NAMES_LIMIT: usize = 256;

impl Watch {
    /// Replaces the names that an object wants and another owner has. The object is woken when one of them may be free.
    pub fn contest(&self, key: &ObjectKey, names: &BTreeSet<Reference>) {
        let targets = names.iter().cloned().map(Target::Named).collect();
        if self.0.with(|state| !state.name_conflicts.set(key, targets).is_empty()) {
            self.0.plan.notify_one();
        }
    }

    /// Returns the metadata of the object that has a contested name. `None` if it is unknown, or if the name is free.
    pub fn rival(&self, name: &Reference) -> Option<Value> {
        self.0.with(|state| {
            let slot = state.rivals(name)?;
            slot.cache.get(name.namespace.as_deref().unwrap_or_default(), &name.name).map(CachedObject::value)
        })
    }

    /// Whether a contested name is followed, so that no pass has to check it.
    pub fn follows(&self, name: &Reference) -> bool {
        self.0.with(|state| state.rivals(name).is_some())
    }
}

impl State {
    /// Returns the watch that follows a contested name, if it works.
    fn rivals(&self, name: &Reference) -> Option<&Slot> {
        let spec = Spec::new(&name.of(), name.namespace.clone(), Select::Contested(name.name.clone()));
        self.slots.get(&spec).filter(|slot| slot.cache.synced && slot.cache.trouble.is_none())
    }

    /// Returns the watches for contested names.
    pub(super) fn contested_specs(&self) -> Vec<Spec> {
        let within = |name: &&Reference| name.namespace.as_deref().is_some_and(|at| self.scope.holds(at));
        let names = self.name_conflicts.all().filter_map(|target| match target {
            Target::Named(name) => Some(name),
            Target::Labelled(_) => None,
        });
        let spec = |name: &Reference| {
            let served = self.served.get(&name.of()).is_some_and(Option::is_some);
            served.then(|| Spec::new(&name.of(), name.namespace.clone(), Select::Contested(name.name.clone())))
        };
        shared_out(names.filter(within).filter_map(spec))
    }

    /// Returns the objects that want the name of an object that appeared, went or changed its owner.
    pub(super) fn contesters(&self, spec: &Spec, change: &Change) -> Wakes {
        let owner = |item: &Option<CachedObject>| item.as_ref().map(|item| item.owner.clone());
        if !matches!(spec.select, Select::Contested(_)) && owner(&change.before) == owner(&change.after) {
            return Wakes::new();
        }
        self.who_wants(spec, &change.namespace, &change.name)
    }

    /// Returns the objects that want a name.
    pub(super) fn who_wants(&self, spec: &Spec, namespace: &str, name: &str) -> Wakes {
        let target = named(&spec.of, Some(namespace), name);
        self.name_conflicts.who(&target).map(|key| (key.clone(), Urgency::Fresh)).collect()
    }
}

/// Limits the followed names: the namespaces take turns with one name each.
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
