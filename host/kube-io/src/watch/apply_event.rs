//! Takes in watch events, lists and our own writes, and finds the objects to wake.

use std::{collections::BTreeSet, sync::Arc};

use kaos_objects::{ResourceType, metadata};
use serde_json::Value;
use tokio::time::Instant;

use super::{
    cache::Change,
    cached_object::{Arrived, Extract},
    event::Event,
    fetched_objects::Answer,
    owners::{Place, Stray},
    plan::{Select, Spec},
    slot::{Handle, Slot},
    state::State,
    watch_error::WatchError,
};
use crate::{
    object_key::{ObjectKey, Wakes},
    queue::Urgency,
};

impl State {
    pub(super) fn slot(&mut self, handle: &Handle) -> Option<&mut Slot> {
        self.slots.get_mut(&*handle.spec).filter(|slot| slot.id == handle.id)
    }

    /// Takes in an event of a watch.
    pub(super) fn event(&mut self, handle: &Handle, event: Event) -> Wakes {
        let spec = &*handle.spec;
        if spec.by_metadata() {
            return self.metadata_event(handle, &event);
        }
        let Some(slot) = self.slot(handle) else { return Wakes::new() };
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
            self.note(spec, &change, false, &mut wakes);
        }
        wakes
    }

    fn metadata_event(&mut self, handle: &Handle, event: &Event) -> Wakes {
        let spec = &*handle.spec;
        let (Event::Is(arrived) | Event::Gone(arrived)) = event else {
            if let (Event::Bookmark(version), Some(slot)) = (event, self.slot(handle)) {
                slot.cache.bookmark(*version);
            }
            return Wakes::new();
        };
        let needed = self.needs.is_needed(&spec.of, &arrived.namespace, &arrived.name);
        let Some(slot) = self.slot(handle) else { return Wakes::new() };
        slot.cache.bookmark(arrived.item.version);
        if handle.extract.labels {
            return self.labelled_event(handle, event);
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
        if changed { self.concerned(spec, &arrived.name) } else { Wakes::new() }
    }

    /// Whether this version of an object is known already.
    pub(super) fn knows(&mut self, handle: &Handle, namespace: &str, name: &str, version: u64) -> bool {
        let known = self.slot(handle).and_then(|slot| slot.cache.get(namespace, name));
        known.is_some_and(|item| item.version >= version)
    }

    /// Takes in a complete list of a version.
    pub(super) fn relist(&mut self, handle: &Handle, listed: Vec<Arrived>, version: u64) -> Wakes {
        let spec = &*handle.spec;
        let needed = if spec.by_metadata() { self.needed(spec) } else { BTreeSet::new() };
        let Some(slot) = self.slot(handle) else { return Wakes::new() };
        let first = !std::mem::replace(&mut slot.cache.synced, true);
        let healed = slot.cache.heal();
        let mut wakes = Wakes::new();
        if spec.by_metadata() {
            slot.cache.relist(Vec::new(), version);
            wakes.extend(self.metadata_list(handle, &listed, version, &needed));
        } else {
            for change in slot.cache.relist(listed, version) {
                self.note(spec, &change, first, &mut wakes);
            }
        }
        if first && let Some(slot) = self.slot(handle) {
            slot.wake_task.notify_one();
        }
        if first || healed {
            wakes.extend(self.answered(spec));
        }
        wakes
    }

    fn metadata_list(
        &mut self,
        handle: &Handle,
        listed: &[Arrived],
        version: u64,
        needed: &BTreeSet<Arc<str>>,
    ) -> Wakes {
        if handle.extract.labels {
            return self.labelled_relist(handle, listed, version, needed);
        }
        let Some(slot) = self.slot(handle) else { return Wakes::new() };
        let changed = slot.fetched.relist(listed, version, needed);
        slot.wake_task.notify_one();
        changed.iter().flat_map(|name| self.concerned(&handle.spec, name)).collect()
    }

    /// Takes in an error of a watch, or its end. If the API server refused an unlisted type, that refusal stands during
    /// an outage, because a restart grants no rights. Known objects stay readable during an outage and during the first
    /// minute of refusals. Metrics and readiness report the error at once.
    pub(super) fn set_trouble(&mut self, handle: &Handle, broken: Option<&WatchError>) -> Wakes {
        let Some(slot) = self.slot(handle) else { return Wakes::new() };
        if slot.cache.is_refused() && !slot.cache.synced && broken.is_some_and(WatchError::is_outage) {
            return Wakes::new();
        }
        let turned = slot.cache.set_trouble(broken, Instant::now());
        if turned { self.answered(&handle.spec) } else { Wakes::new() }
    }

    /// Takes in that a needed object is not readable. Its last known content counts until the refusal has lasted long
    /// enough.
    pub(super) fn unreadable(&mut self, handle: &Handle, name: &Arc<str>, why: &str, lasts: bool) -> Wakes {
        if !lasts && self.slot(handle).is_some_and(|slot| slot.fetched.is_known(name)) {
            return Wakes::new();
        }
        self.fetched(handle, name, 0, Answer::Forbidden(why.to_owned()))
    }

    /// Takes in a needed object that was read.
    pub(super) fn fetched(&mut self, handle: &Handle, name: &Arc<str>, version: u64, answer: Answer) -> Wakes {
        if handle.extract.labels && handle.spec.by_metadata() {
            return self.labelled_fetched(handle, name, version, answer);
        }
        let namespace = handle.spec.namespace.as_deref().unwrap_or_default();
        if !self.needs.is_needed(&handle.spec.of, namespace, name) {
            return Wakes::new();
        }
        let changed = self.slot(handle).is_some_and(|slot| slot.fetched.fetched(name, version, answer));
        if changed { self.concerned(&handle.spec, name) } else { Wakes::new() }
    }

    /// Takes in a child without our label that the sweep found.
    pub(super) fn swept(&mut self, handle: &Handle, object: &Value) -> Wakes {
        let of = &handle.spec.of;
        let Some(owner) = super::cached_object::owner_of(object) else { return Wakes::new() };
        let emits =
            |primary: &&ResourceType| self.coverage.claimed(primary).is_some_and(|claimed| claimed.emits.contains(of));
        let Some(primary) = self.coverage.primary_of(&owner.of).filter(emits).cloned() else { return Wakes::new() };
        let Ok(arrived) = Arrived::new(object.clone(), of, Extract::default()) else { return Wakes::new() };
        let Some(slot) = self.slot(handle) else { return Wakes::new() };
        if slot.cache.get(&arrived.namespace, &arrived.name).is_some() {
            return Wakes::new();
        }
        let key = ObjectKey::new(primary, &*arrived.namespace, owner.name);
        let place = Place { of: Arc::clone(&slot.of), namespace: arrived.namespace, name: arrived.name };
        let (uid, version) = (arrived.item.uid, arrived.item.version);
        self.owners.stray(place, Stray { uid, version, owner: owner.uid.into() });
        vec![(key, Urgency::Bulk)]
    }

    /// Takes in the answer to our write. The owner that wrote a child knows about it; other objects that need the child
    /// do not. The answer to a write of an object of a claimed kind may show a user's change since the pass began. That
    /// pass did not know the change, so it counts as an event.
    pub(super) fn wrote(&mut self, object: &Value) -> Wakes {
        let mut wakes = Wakes::new();
        let Some(key) = ObjectKey::of_object(object) else { return wakes };
        let Some(spec) = self.store(&key.of, &key.namespace).map(|(spec, _)| spec.clone()) else { return wakes };
        if spec.select == Select::Own && object["metadata"]["labels"][metadata::MANAGED_BY] != metadata::MANAGER {
            return wakes;
        }
        let change = self.slots.get_mut(&spec).and_then(|slot| {
            let arrived = Arrived::new(object.clone(), &key.of, slot.extract).ok()?;
            slot.cache.wrote(arrived)
        });
        if let Some(change) = change {
            let quietly = !self.coverage.is_primary(&key.of);
            self.note(&spec, &change, quietly, &mut wakes);
        }
        wakes
    }

    /// Takes in the answer to our deletion of an object that is gone.
    pub(super) fn deleted(&mut self, of: &ResourceType, namespace: &str, name: &str, uid: &str) -> Wakes {
        let mut wakes = Wakes::new();
        let Some((spec, slot)) = self.store(of, namespace).map(|(spec, slot)| (spec.clone(), slot)) else {
            return wakes;
        };
        let place = Place { of: Arc::clone(&slot.of), namespace: namespace.into(), name: name.into() };
        if self.owners.stray_at(&place).is_some_and(|stray| *stray.uid == *uid) {
            self.owners.forget_stray(&place);
        }
        let change = self.slots.get_mut(&spec).and_then(|slot| slot.cache.deleted(namespace, name, uid));
        if let Some(change) = change {
            self.note(&spec, &change, true, &mut wakes);
        }
        wakes
    }

    /// Takes in a changed object: updates the owner index and wakes the objects that it concerns.
    fn note(&mut self, spec: &Spec, change: &Change, quietly: bool, wakes: &mut Wakes) {
        let of = &spec.of;
        let namespace = &*change.namespace;
        let place = self.slots.get(spec).filter(|_| spec.is_store()).map(|slot| {
            let (namespace, name) = (Arc::clone(&change.namespace), Arc::clone(&change.name));
            Place { of: Arc::clone(&slot.of), namespace, name }
        });
        if let Some(place) = &place {
            if change.after.is_some() {
                self.owners.forget_stray(place);
            }
            let owner = |item: Option<&super::cached_object::CachedObject>| item.and_then(|item| item.owner.clone());
            let (before, after) = (owner(change.before.as_ref()), owner(change.after.as_ref()));
            self.owners.moved(place, before.as_deref(), after.as_deref());
        }
        if !change.is_visible() {
            return;
        }
        if !quietly && spec.select == Select::Whole && self.coverage.is_primary(of) && change.is_essential() {
            wakes.push((ObjectKey::new(of.clone(), namespace, &*change.name), Urgency::Fresh));
        }
        if let Some(place) = place.filter(|_| !quietly && self.coverage.is_emitted(of)) {
            let version = change.after.as_ref().map_or(0, |item| item.version);
            let owners = self.owners_of(of, change);
            wakes.extend(self.in_flight.hold(&place, version, owners));
        }
        wakes.extend(self.contesters(spec, change));
        if !matches!(spec.select, Select::Own | Select::Contested(_)) && self.coverage.is_read(of) {
            let states = [change.before.as_ref(), change.after.as_ref()];
            let keys = self.needs.concerned(of, namespace, &change.name, states);
            wakes.extend(keys.into_iter().map(|key| (key, Urgency::Fresh)));
        }
    }

    /// Returns the owners of an object, if their kind may have such children.
    fn owners_of(&self, of: &ResourceType, change: &Change) -> Wakes {
        let key = |owner: super::cached_object::Owner| {
            let primary = self.coverage.primary_of(&owner.of)?;
            let emits = self.coverage.claimed(primary).is_some_and(|claimed| claimed.emits.contains(of));
            emits.then(|| (ObjectKey::new(primary.clone(), &*change.namespace, owner.name), Urgency::Fresh))
        };
        change.owners().into_iter().filter_map(key).collect()
    }

    /// Returns the objects that need an object of a guarded type by name.
    pub(super) fn concerned(&self, spec: &Spec, name: &str) -> Wakes {
        let namespace = spec.namespace.as_deref().unwrap_or_default();
        let keys = self.needs.concerned(&spec.of, namespace, name, [None, None]);
        keys.into_iter().map(|key| (key, Urgency::Fresh)).collect()
    }

    /// Returns the objects to wake after a watch got its first answer, recovered, or lost its rights.
    fn answered(&self, spec: &Spec) -> Wakes {
        if spec.is_store() {
            return self.claimers(&spec.of);
        }
        if let Select::Contested(name) = &spec.select {
            return self.who_wants(spec, spec.namespace.as_deref().unwrap_or_default(), name);
        }
        let targets = self.needs.of_type(&spec.of).filter(|target| spec.answers(target));
        targets.flat_map(|target| self.needs.who(target)).map(|key| (key.clone(), Urgency::Fresh)).collect()
    }
}

/// The reads of needed objects.
impl State {
    /// Returns the next needed object to read, with its minimum version.
    pub(super) fn next_to_read(&mut self, handle: &Handle) -> Option<(Arc<str>, u64)> {
        self.slot(handle)?.fetched.take()
    }

    /// Schedules another read of objects whose read failed.
    pub(super) fn read_again(&mut self, handle: &Handle, failed: &[(Arc<str>, u64)]) {
        let is_needed = |(name, _): &&(Arc<str>, u64)| self.is_wanted(&handle.spec, name);
        let needed: Vec<_> = failed.iter().filter(is_needed).cloned().collect();
        let Some(slot) = self.slot(handle) else { return };
        for (name, version) in &needed {
            slot.fetched.read_again(name, *version);
        }
        slot.wake_task.notify_one();
    }
}
