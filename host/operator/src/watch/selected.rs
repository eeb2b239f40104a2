//! Needed ConfigMaps of a namespace in which policies select by many labels: one watch of the namespace's metadata takes the
//! place of a watch for each selector. Which labels each object has is kept, as hashes; what is selected is read one by one.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kaos_policy::contract::Target;

use super::{
    facts::Answer,
    intake::Event,
    item::{Arrived, Item},
    key::ObjectKey,
    lookup::Look,
    plan::Spec,
    state::{Handle, Slot, State, Wakes},
};
use crate::{hashing::hash, queue::Urgency};

/// Which objects have which labels. Two labels with the same hash lead to an object that is read for nothing, and no further.
#[derive(Debug, Default)]
pub(super) struct ByLabel {
    of_name: BTreeMap<Arc<str>, Labelled>,
    names: BTreeMap<u64, BTreeSet<Arc<str>>>,
    /// How often it was decided whether anything selects an object.
    #[cfg(test)]
    decided: std::sync::atomic::AtomicUsize,
}

#[derive(Debug)]
struct Labelled {
    version: u64,
    labels: Box<[u64]>,
}

type Labels = [(String, String)];

fn marks(labels: &Labels) -> Vec<u64> {
    labels.iter().map(|(key, value)| hash((key.as_str(), value.as_str()))).collect()
}

impl ByLabel {
    /// There is a version of an object. Says whether it is newer than what is known.
    fn put(&mut self, name: &Arc<str>, item: &Item) -> bool {
        if self.of_name.get(name).is_some_and(|known| known.version >= item.version) {
            return false;
        }
        self.take(name);
        let labels: Box<[u64]> = item.labels.iter().map(|(key, value)| hash((&**key, &**value))).collect();
        for label in &labels {
            self.names.entry(*label).or_default().insert(Arc::clone(name));
        }
        self.of_name.insert(Arc::clone(name), Labelled { version: item.version, labels });
        true
    }

    /// An object went at a version. Says whether that is newer than what is known.
    fn gone(&mut self, name: &str, version: u64) -> bool {
        let is_newer = self.of_name.get(name).is_none_or(|known| known.version <= version);
        if is_newer {
            self.take(name);
        }
        is_newer
    }

    fn take(&mut self, name: &str) {
        let labels = self.of_name.remove(name).map(|known| known.labels).unwrap_or_default();
        for label in labels {
            let names = self.names.get_mut(&label);
            if names.is_some_and(|names| names.remove(name) && names.is_empty()) {
                self.names.remove(&label);
            }
        }
    }

    /// Objects that a list as of a version does not have.
    fn vanished(&self, listed: &[Arrived], version: u64) -> Vec<Arc<str>> {
        let listed: BTreeSet<&str> = listed.iter().map(|arrived| &*arrived.name).collect();
        let vanished = |(name, known): &(&Arc<str>, &Labelled)| known.version <= version && !listed.contains(&***name);
        self.of_name.iter().filter(vanished).map(|(name, _)| Arc::clone(name)).collect()
    }

    /// Whether an object has all of these labels.
    fn carries(&self, name: &str, labels: &Labels) -> bool {
        self.has(name, &marks(labels))
    }

    /// Whether one of these selectors, as the hashes of its labels, selects an object.
    fn is_selected(&self, name: &str, selectors: &[Vec<u64>]) -> bool {
        #[cfg(test)]
        self.decided.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        selectors.iter().any(|marks| self.has(name, marks))
    }

    fn has(&self, name: &str, marks: &[u64]) -> bool {
        self.of_name.get(name).is_some_and(|known| marks.iter().all(|mark| known.labels.contains(mark)))
    }

    /// Objects that have all of these labels, by name.
    fn matching(&self, labels: &Labels) -> Vec<Arc<str>> {
        let marks = marks(labels);
        let mut fewest: Option<&BTreeSet<Arc<str>>> = None;
        for mark in &marks {
            let Some(names) = self.names.get(mark) else { return Vec::new() };
            if fewest.is_none_or(|fewest| names.len() < fewest.len()) {
                fewest = Some(names);
            }
        }
        match fewest {
            Some(names) => names.iter().filter(|name| self.has(name, &marks)).cloned().collect(),
            None => self.of_name.keys().cloned().collect(),
        }
    }
}

impl Slot {
    /// What is known of the objects with these labels.
    pub(super) fn selected(&self, labels: &Labels) -> Look {
        let mut found = Vec::new();
        for name in self.labels.matching(labels) {
            match self.facts.get(&name) {
                None => return Look::Pending,
                Some(Answer::Forbidden(why)) => return Look::Forbidden(why.clone()),
                Some(Answer::Object(item)) if item.carries(labels) => found.push((item.text(), item.version)),
                Some(Answer::Object(_) | Answer::Absent | Answer::Secret(_)) => {}
            }
        }
        Look::Objects(found)
    }
}

impl State {
    /// Who needs an object by labels that it has, as far as its watch has told.
    fn selecting(&self, spec: &Spec, name: &str) -> BTreeSet<ObjectKey> {
        let Some(slot) = self.slots.get(spec) else { return BTreeSet::new() };
        let selectors = self.needs.selectors(&spec.of, spec.namespace.as_deref());
        let selecting = selectors.filter(|(selector, _)| slot.labels.carries(name, &selector.labels));
        selecting.flat_map(|(_, keys)| keys).map(|key| ObjectKey::clone(key)).collect()
    }

    /// Whether anybody needs an object, by name or by its labels.
    pub(super) fn is_wanted(&self, spec: &Spec, name: &str) -> bool {
        let is_selected = |slot: &Slot| {
            let mut selectors = self.needs.selectors(&spec.of, spec.namespace.as_deref());
            selectors.any(|(selector, _)| slot.labels.carries(name, &selector.labels))
        };
        self.is_named(spec, name) || self.slots.get(spec).is_some_and(is_selected)
    }

    fn is_named(&self, spec: &Spec, name: &str) -> bool {
        self.needs.is_needed(&spec.of, spec.namespace.as_deref().unwrap_or_default(), name)
    }

    /// The watch tells of an object.
    pub(super) fn labelled_event(&mut self, handle: &Handle, event: &Event) -> Wakes {
        let (name, version, item) = match event {
            Event::Is(arrived) => (&arrived.name, arrived.item.version, Some(&arrived.item)),
            Event::Gone(arrived) => (&arrived.name, arrived.item.version, None),
            Event::Bookmark(_) => return Wakes::new(),
        };
        self.relabelled(handle, name, version, item)
    }

    /// An object has other labels now, or is gone (none). Who does not see it any more is woken at once; who does, as soon as
    /// it was read.
    fn relabelled(&mut self, handle: &Handle, name: &Arc<str>, version: u64, item: Option<&Item>) -> Wakes {
        let spec = &*handle.spec;
        let (before, is_named) = (self.selecting(spec, name), self.is_named(spec, name));
        let Some(slot) = self.slot(handle) else { return Wakes::new() };
        let is_news = match item {
            Some(item) => slot.labels.put(name, item),
            None => slot.labels.gone(name, version),
        };
        if !is_news {
            return Wakes::new();
        }
        let after = self.selecting(spec, name);
        let mut woken: BTreeSet<ObjectKey> = before.difference(&after).cloned().collect();
        let Some(slot) = self.slot(handle) else { return Wakes::new() };
        let mut changed = false;
        if item.is_some() && (is_named || !after.is_empty()) {
            if slot.facts.version(name, version) {
                slot.errand.notify_one();
            }
            if slot.facts.has(name, version) {
                woken.extend(after);
            }
        } else if is_named {
            changed = slot.facts.gone(name, version);
        } else {
            slot.facts.forget(name);
        }
        let mut wakes: Wakes = woken.into_iter().map(|key| (key, Urgency::Fresh)).collect();
        if changed {
            wakes.extend(self.concerned(spec, name));
        }
        wakes
    }

    /// A list came, as of a version. `named` are the names that are needed.
    pub(super) fn labelled_relist(
        &mut self,
        handle: &Handle,
        listed: &[Arrived],
        version: u64,
        named: &BTreeSet<Arc<str>>,
    ) -> Wakes {
        let spec = &*handle.spec;
        let Some(slot) = self.slots.get_mut(spec).filter(|slot| slot.id == handle.id) else { return Wakes::new() };
        let mut wakes = Wakes::new();
        if slot.labels.of_name.is_empty() {
            for arrived in listed {
                slot.labels.put(&arrived.name, &arrived.item);
            }
            for (selector, _) in self.needs.selectors(&spec.of, spec.namespace.as_deref()) {
                for name in slot.labels.matching(&selector.labels) {
                    slot.facts.want(&name);
                }
            }
        } else {
            let vanished = slot.labels.vanished(listed, version);
            for arrived in listed {
                wakes.extend(self.relabelled(handle, &arrived.name, arrived.item.version, Some(&arrived.item)));
            }
            for name in vanished {
                wakes.extend(self.relabelled(handle, &name, version, None));
            }
        }
        let Some(slot) = self.slot(handle) else { return wakes };
        let changed = slot.facts.relist(listed, version, named);
        slot.errand.notify_one();
        for name in changed {
            wakes.extend(self.concerned(spec, &name));
        }
        wakes
    }

    /// A needed object was read.
    pub(super) fn labelled_fetched(&mut self, handle: &Handle, name: &Arc<str>, version: u64, answer: Answer) -> Wakes {
        let spec = &*handle.spec;
        let (mut concerned, is_named) = (self.selecting(spec, name), self.is_named(spec, name));
        let Some(slot) = self.slot(handle) else { return Wakes::new() };
        // What the watch does not know is gone, or about to be told.
        if let Answer::Object(item) = &answer
            && slot.labels.of_name.contains_key(name)
        {
            slot.labels.put(name, item);
        }
        let after = self.selecting(spec, name);
        let is_wanted = is_named || !after.is_empty();
        concerned.extend(after);
        let Some(slot) = self.slot(handle) else { return Wakes::new() };
        let changed = if is_wanted {
            slot.facts.fetched(name, version, answer)
        } else {
            slot.facts.forget(name);
            true
        };
        if !changed {
            return Wakes::new();
        }
        let mut wakes: Wakes = concerned.into_iter().map(|key| (key, Urgency::Fresh)).collect();
        wakes.extend(self.concerned(spec, name));
        wakes
    }

    /// Targets are needed now that were not before, or the other way round. Whether an object is needed still is decided once
    /// for all of them: an object may go that had hundreds of selectors.
    pub(super) fn needs_changed(&mut self, changed: &[Arc<Target>]) {
        // By object, whether something new needs it.
        let mut concerned: BTreeMap<Spec, BTreeMap<Arc<str>, bool>> = BTreeMap::new();
        for target in changed {
            let is_needed = self.needs.who(target).next().is_some();
            let spec = Spec::new(&target.of(), target.namespace().map(str::to_owned), super::plan::Select::Wide);
            let Some(slot) = self.slots.get(&spec) else { continue };
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
            let selectors = self.needs.selectors(&spec.of, spec.namespace.as_deref());
            let selectors: Vec<Vec<u64>> = selectors.map(|(selector, _)| marks(&selector.labels)).collect();
            let is_wanted = |name: &str| {
                let is_selected = |slot: &Slot| slot.labels.is_selected(name, &selectors);
                self.is_named(&spec, name) || self.slots.get(&spec).is_some_and(is_selected)
            };
            let decided: Vec<(Arc<str>, bool)> = names
                .into_iter()
                .map(|(name, is_needed)| {
                    let keep = is_needed || is_wanted(&name);
                    (name, keep)
                })
                .collect();
            let Some(slot) = self.slots.get_mut(&spec) else { continue };
            for (name, keep) in decided {
                if keep {
                    slot.facts.want(&name);
                    slot.errand.notify_one();
                } else {
                    slot.facts.forget(&name);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
