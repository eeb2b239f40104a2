//! Names that somebody wants for a child and somebody else has: followed by their metadata until they are free, so that a
//! clash heals at once and costs no request meanwhile.

use std::collections::{BTreeMap, BTreeSet};

use kaos_policy::contract::{Reference, Target};
use serde_json::Value;

use super::{
    Watch,
    item::Item,
    key::{ObjectKey, Wakes},
    needs::named,
    plan::{Select, Spec},
    shelf::Change,
    slot::Slot,
    state::State,
};
use crate::queue::Urgency;

/// Names that are followed in one namespace at a time. The owners of further clashes are looked at again now and then.
const MOST: usize = 64;
/// Names that are followed in all namespaces. Beyond that, each namespace has its share.
const MOST_IN_ALL: usize = 256;

impl Watch {
    /// Says which names an object wants that somebody else has, in place of what was said before. It is woken when one
    /// of them may have become free.
    pub fn contest(&self, key: &ObjectKey, names: &BTreeSet<Reference>) {
        let targets = names.iter().cloned().map(Target::Named).collect();
        if self.0.with(|state| !state.contested.set(key, targets).is_empty()) {
            self.0.plan.notify_one();
        }
    }

    /// The metadata of whoever has a contested name, as an object; none if that is not known, or nobody has it.
    pub fn rival(&self, name: &Reference) -> Option<Value> {
        self.0.with(|state| {
            let slot = state.rivals(name)?;
            slot.shelf.get(name.namespace.as_deref().unwrap_or_default(), &name.name).map(Item::value)
        })
    }

    /// Whether a contested name is followed, so that nobody has to look again.
    pub fn follows(&self, name: &Reference) -> bool {
        self.0.with(|state| state.rivals(name).is_some())
    }
}

impl State {
    /// What follows a contested name, if it works.
    fn rivals(&self, name: &Reference) -> Option<&Slot> {
        let spec = Spec::new(&name.of(), name.namespace.clone(), Select::Contested(name.name.clone()));
        self.slots.get(&spec).filter(|slot| slot.shelf.synced && slot.shelf.trouble.is_none())
    }

    /// The watches that contested names take.
    pub(super) fn contested_specs(&self) -> Vec<Spec> {
        let within = |name: &&Reference| name.namespace.as_deref().is_some_and(|at| self.scope.holds(at));
        let names = self.contested.all().filter_map(|target| match target {
            Target::Named(name) => Some(name),
            Target::Labelled(_) => None,
        });
        let spec = |name: &Reference| {
            let served = self.served.get(&name.of()).is_some_and(Option::is_some);
            served.then(|| Spec::new(&name.of(), name.namespace.clone(), Select::Contested(name.name.clone())))
        };
        shared_out(names.filter(within).filter_map(spec))
    }

    /// Who wants the name of an object whose place in the world has changed.
    pub(super) fn contesters(&self, spec: &Spec, change: &Change) -> Wakes {
        let owner = |item: &Option<Item>| item.as_ref().map(|item| item.owner.clone());
        if !matches!(spec.select, Select::Contested(_)) && owner(&change.before) == owner(&change.after) {
            return Wakes::new();
        }
        self.who_wants(spec, &change.namespace, &change.name)
    }

    /// Who wants a name.
    pub(super) fn who_wants(&self, spec: &Spec, namespace: &str, name: &str) -> Wakes {
        let target = named(&spec.of, Some(namespace), name);
        self.contested.who(&target).map(|key| (key.clone(), Urgency::Fresh)).collect()
    }
}

/// As many of these as are followed: the namespaces take turns, one name each time.
fn shared_out(specs: impl Iterator<Item = Spec>) -> Vec<Spec> {
    let mut had: BTreeMap<Option<String>, usize> = BTreeMap::new();
    let mut in_turn: BTreeSet<(usize, Spec)> = BTreeSet::new();
    for spec in specs {
        let turn = had.entry(spec.namespace.clone()).or_default();
        *turn += 1;
        if *turn <= MOST {
            in_turn.insert((*turn, spec));
        }
    }
    in_turn.into_iter().map(|(_, spec)| spec).take(MOST_IN_ALL).collect()
}

#[cfg(test)]
mod tests {
    use kaos_policy::contract::ResourceType;

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
        assert_eq!((followed(&specs, 0), followed(&specs, 1)), (MOST, 3));
    }

    #[test]
    fn where_all_have_too_many_clashes_each_namespace_has_its_share() {
        let all = (0..20).flat_map(|namespace| clashes(namespace, 100)).chain(clashes(20, 2));
        let specs = shared_out(all);
        assert_eq!((specs.len(), followed(&specs, 20)), (MOST_IN_ALL, 2));
        assert!((0..20).all(|namespace| (12..=13).contains(&followed(&specs, namespace))), "{specs:?}");
        assert_eq!(shared_out((0..1000).flat_map(|namespace| clashes(namespace, 1))).len(), MOST_IN_ALL);
    }
}
