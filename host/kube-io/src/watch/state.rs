//! The state of all watches.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kaos_objects::{ResourceType, Target};
use tokio::sync::watch;

use super::{
    allowance::{Allowance, Ledger},
    coverage::{Coverage, is_guarded},
    dictionary::Dictionary,
    difference::Difference,
    discovery::Served,
    foreign_state::ForeignState,
    in_flight_writes::InFlightWrites,
    known::KnownDefinitions,
    needs::Needs,
    owners::Owners,
    plan::{Scope, Select, Spec},
    slot::{Handle, Slot},
    wake_log::WakeLog,
};
use crate::{
    object_key::{ObjectKey, Wakes},
    queue::Urgency,
};

/// The state of all watches: the watched types, their objects, and the needs.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) scope: Scope,
    pub(super) secrets: bool,
    pub(super) most_named: usize,
    pub(super) allowance: Allowance,
    pub(super) coverage: Coverage,
    /// The types for which discovery has an answer. The value is `None` if the API server does not serve the type.
    pub(super) served: BTreeMap<ResourceType, Option<Served>>,
    /// The API versions for which discovery failed, with the reasons.
    pub(super) undiscovered: BTreeMap<String, String>,
    pub(super) slots: BTreeMap<Spec, Slot>,
    /// A dictionary for each watched type.
    pub(super) dictionaries: BTreeMap<ResourceType, Arc<Dictionary>>,
    pub(super) owners: Owners,
    pub(super) in_flight: InFlightWrites,
    /// The number of times that rights have returned to the operator.
    pub(super) rights: watch::Sender<u64>,
    /// The objects for which the last pass lacked a right.
    pub(super) denied: BTreeSet<ObjectKey>,
    pub(super) needs: Needs,
    pub(super) ledger: Ledger,
    /// The contested names, each with the objects whose plans contain a child of this name.
    pub(super) name_conflicts: Needs,
    pub(super) definitions: KnownDefinitions,
    /// Watches that other parts of the operator run.
    pub(super) foreign: BTreeMap<u64, ForeignState>,
    /// The operator's own namespace.
    pub(super) home: String,
    pub(super) last_id: u64,
    /// The number of changes so far that concern whole types: served types, definitions, and errors of watches.
    pub(super) changes: u64,
    pub(super) wake_log: WakeLog,
}

impl State {
    /// Returns the covered types that are not served, or that discovery has not found yet.
    pub(super) fn unserved(&self) -> BTreeSet<ResourceType> {
        let is_served = |of: &ResourceType| matches!(self.served.get(of), Some(Some(_)));
        let mut types = self.coverage.types();
        types.retain(|of| !is_served(of) || self.undiscovered.contains_key(&of.api_version));
        types
    }

    /// Returns whether the operator can follow a target. The operator can follow every target in its scope. In its own
    /// namespace, the operator can always follow ConfigMaps and Secrets by name, because it has separate rights for
    /// them.
    pub(super) fn reaches(&self, target: &Target) -> bool {
        let at = target.namespace().unwrap_or_default();
        self.scope.holds(at) || (at == self.home && is_guarded(&target.of()) && matches!(target, Target::Named(_)))
    }

    /// Returns the names of the needed objects that a watch covers.
    pub(super) fn needed(&self, spec: &Spec) -> BTreeSet<Arc<str>> {
        let targets = self.needs.of_type(&spec.of).filter(|target| spec.answers(target));
        let name = |target: &Target| match target {
            Target::Named(reference) => Some(Arc::from(reference.name.as_str())),
            Target::Labelled(_) => None,
        };
        targets.filter_map(name).collect()
    }

    /// Returns the watches of a type.
    pub(super) fn slots_of<'a>(&'a self, of: &'a ResourceType) -> impl Iterator<Item = (&'a Spec, &'a Slot)> {
        self.slots.range(Spec::new(of, None, Select::Whole)..).take_while(move |(spec, _)| spec.of == *of)
    }

    /// Returns the store of a type that covers a namespace, or `None` if the operator has no such store.
    pub(super) fn store(&self, of: &ResourceType, namespace: &str) -> Option<(&Spec, &Slot)> {
        let place = match &self.scope {
            Scope::All => None,
            Scope::Listed(_) => Some(namespace.to_owned()),
        };
        let mut spec = Spec::new(of, place, Select::Whole);
        if !self.slots.contains_key(&spec) {
            spec.select = Select::Own;
        }
        self.slots.get_key_value(&spec)
    }

    /// Returns the watch that answers a need for a ConfigMap or a Secret. Returns `None` without such a watch.
    pub(super) fn answering(&self, target: &Target) -> Option<(&Spec, &Slot)> {
        let select = match target {
            Target::Named(reference) => Select::Named(reference.name.clone()),
            Target::Labelled(selector) => Select::Labelled(selector.labels.clone()),
        };
        let mut spec = Spec::new(&target.of(), target.namespace().map(str::to_owned), select);
        if self.slots.contains_key(&spec) {
            return self.slots.get_key_value(&spec);
        }
        spec.select = Select::Wide;
        let keeps = |slot: &Slot| matches!(target, Target::Named(_)) || slot.extract.labels;
        self.slots.get_key_value(&spec).filter(|(_, slot)| keeps(slot))
    }

    /// Returns the keys of all objects of a claimed kind.
    pub(super) fn keys(&self, of: &ResourceType) -> Vec<ObjectKey> {
        let stores = self.slots_of(of).filter(|(spec, _)| spec.select == Select::Whole);
        let objects = stores.flat_map(|(_, slot)| slot.cache.iter(None));
        objects.map(|(namespace, name, _)| ObjectKey::new(of.clone(), &**namespace, &**name)).collect()
    }

    /// Returns the reasons why passes over a claimed kind wait. The list is empty after every type in the claims on
    /// this kind is listed, refused or not served.
    pub(super) fn waiting_for(&self, primary: &ResourceType) -> Vec<String> {
        let Some(claimed) = self.coverage.claimed(primary) else { return Vec::new() };
        let types: BTreeSet<&ResourceType> = std::iter::once(primary).chain(claimed.types()).collect();
        types.into_iter().filter_map(|of| self.unknown(of)).collect()
    }

    /// Returns the types that the watch has not listed yet, among a claimed kind and the types of its children.
    pub(super) fn unlisted(&self, primary: &ResourceType) -> Vec<ResourceType> {
        let Some(claimed) = self.coverage.claimed(primary) else { return Vec::new() };
        let types = std::iter::once(primary).chain(&claimed.emits);
        types.filter(|of| self.unknown(of).is_some()).cloned().collect()
    }

    /// Returns the reason why the state of a type is not known yet, or `None` if the state is known.
    pub(super) fn unknown(&self, of: &ResourceType) -> Option<String> {
        match self.served.get(of) {
            None => Some(match self.undiscovered.get(&of.api_version) {
                Some(why) => format!("{of}: discovery failed: {why}"),
                None => format!("{of}: discovery has not answered yet"),
            }),
            Some(None) => None,
            Some(Some(_)) => self.slots_of(of).filter(|(spec, _)| spec.is_store()).find_map(|(spec, slot)| {
                let trouble = slot.cache.trouble.as_ref();
                match trouble {
                    _ if slot.cache.synced => None,
                    Some(trouble) if trouble.forbidden => None,
                    Some(trouble) => Some(format!("{spec}: {}", trouble.text)),
                    None => Some(format!("{spec}: not listed yet")),
                }
            }),
        }
    }

    /// Returns all objects of the type, if it is a claimed kind, and of each kind whose claims contain the type. Leaves
    /// out kinds that wait for another type.
    pub(super) fn claimers(&self, of: &ResourceType) -> Wakes {
        let concerned = self.coverage.primaries().filter(|(primary, claimed)| *primary == of || claimed.mentions(of));
        let ready = concerned.filter(|(primary, _)| self.waiting_for(primary).is_empty());
        ready.flat_map(|(primary, _)| self.keys(primary)).map(|key| (key, Urgency::Bulk)).collect()
    }

    /// Returns why the operator does not follow the objects of a type in a namespace now; `None` if the operator
    /// follows these objects.
    pub(super) fn trouble_in(&self, of: &ResourceType, namespace: &str) -> Option<String> {
        let covers = |spec: &Spec| spec.namespace.as_deref().is_none_or(|at| at == namespace);
        let mut slots = self.slots_of(of).filter(|(spec, _)| covers(spec));
        let undiscovered = self.undiscovered.get(&of.api_version).cloned();
        undiscovered.or_else(|| slots.find_map(|(_, slot)| Some(slot.cache.trouble.as_ref()?.text.clone())))
    }

    /// Returns why the operator cannot watch a type now; `None` if it can.
    pub(super) fn trouble(&self, of: &ResourceType) -> Option<String> {
        let undiscovered = self.undiscovered.get(&of.api_version).cloned();
        let troubles = self.slots_of(of).filter_map(|(_, slot)| slot.cache.trouble.as_ref());
        undiscovered.or_else(|| troubles.map(|trouble| trouble.text.clone()).next())
    }

    pub(super) fn slot(&mut self, handle: &Handle) -> Option<&mut Slot> {
        self.slots.get_mut(&*handle.spec).filter(|slot| slot.id == handle.id)
    }

    /// Returns the objects to wake after a change of the object `name`, which has a guarded type: the objects that need
    /// this object and that the change concerns.
    pub(super) fn concerned(&self, spec: &Spec, name: &str, difference: &Difference<'_>) -> Wakes {
        let namespace = spec.namespace.as_deref().unwrap_or_default();
        let keys = self.needs.concerned(&spec.of, namespace, name, difference, |target| spec.answers(target));
        keys.into_iter().map(|key| (key, Urgency::Fresh)).collect()
    }
}
