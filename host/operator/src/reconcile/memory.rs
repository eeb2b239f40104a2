//! What is remembered of an object between passes: little, and nothing that a restart must not lose.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Mutex,
};

use kaos_policy::{
    contract::{Need, Reference, ResourceType},
    policy::PolicyId,
};
use tokio::time::Instant;

use super::{
    api::named,
    effort::{Effort, Spent},
    error::{CallError, Class},
    mark::{Mark, child_mark},
    rejected::Rejected,
    rolls::Read,
    wanted::Wanted,
};
use crate::{
    hashing::hash,
    locking::lock,
    metrics::{Readiness, Tally, Unserved},
    watch::ObjectKey,
};

/// What is remembered of one object.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memory {
    pub(crate) uid: String,
    /// The mark of the needs that the watch was told.
    pub(crate) needs: Option<Mark>,
    /// What was needed by all that were asked, where the object goes without a revision: each of them is asked again.
    pub(crate) needed: Vec<Need>,
    /// By child: how the server stores what was applied.
    pub(crate) stored: BTreeMap<Mark, Stored>,
    /// Names that somebody else has.
    pub(crate) conflicts: BTreeSet<Reference>,
    /// What the server does not take, by child.
    pub(crate) rejected: BTreeMap<Mark, Rejected>,
    /// How often children were written lately.
    pub(crate) effort: Effort,
    /// What is to be told of a child that somebody else undoes.
    pub(crate) undone: Option<String>,
    /// The plan that the server was found to take.
    pub(crate) rehearsed: Option<Mark>,
    /// A status that differs from the one that is wanted, and that nothing can or need be done about.
    pub(crate) status: Option<Mark>,
    /// Whether this process wrote its status: nothing in it is left to take over.
    pub(crate) told: bool,
    /// Passes in a row that the API server did not let through.
    pub(crate) failures: u32,
    /// Since when the first plan waits for objects that it names.
    pub(crate) awaiting: Option<Instant>,
    /// Since when there are children that their controllers have not looked at.
    pub(crate) unseen: Option<Instant>,
    /// By ConfigMap that was there before us: what it held.
    pub(crate) found: BTreeMap<Mark, Mark>,
    /// The finalizer that the last plan asked for.
    pub(crate) finalizer: Option<String>,
    /// Finalizers that nothing names any more: whether it was us who put them on.
    pub(crate) put_on: BTreeMap<String, bool>,
    /// What was read last of what the pods of its plan refer to.
    pub(crate) read: Read,
    /// What was told of its readiness last.
    pub(crate) ready: Option<Readiness>,
    /// Why what should serve it does not, as far as the last pass that told of it could say.
    pub(crate) unserved: Option<Unserved>,
    /// The swap of policies that the last pass was made after.
    pub(crate) since: u64,
    pub(crate) last: Option<Last>,
}

impl Memory {
    /// Forgets what is remembered of children that are not planned; how the server stores one, only when it is not there
    /// either.
    pub(crate) fn keep(&mut self, planned: &BTreeSet<Mark>, there: &BTreeSet<Mark>) {
        self.stored.retain(|child, _| planned.contains(child) || there.contains(child));
        self.rejected.retain(|child, _| planned.contains(child));
        self.found.retain(|child, _| planned.contains(child));
    }
}

impl Memory {
    /// Takes a write of a child, for this reason. Every write costs effort, of which there is only so much for one child.
    pub(super) fn spend(&mut self, wanted: &Wanted, reason: &str) -> Result<(), CallError> {
        let (child, plan) = (child_mark(&wanted.reference()), hash(wanted.digest()));
        let (wait, message) = match self.effort.spend(child, plan, Instant::now()) {
            Ok(()) => return Ok(()),
            Err(Spent::Same(wait)) => {
                let undone = "it was written again and again, and somebody undoes that";
                let message = format!("{undone}: {reason}; see who else writes or deletes it");
                self.undone = Some(format!("{}: {message}", named(&wanted.reference())));
                (wait, message)
            }
            Err(Spent::Changed(wait)) => {
                let changes = "its plan changed again and again";
                (wait, format!("{changes}: see who edits this object, or what it refers to"))
            }
        };
        let what = format!("apply {}", named(&wanted.reference()));
        Err(CallError { what, class: Class::Transient(Some(wait)), message })
    }
}

/// How the server stores a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stored {
    /// What was applied with this mark came back as it was wanted: a difference is drift.
    Exactly(Mark),
    /// It came back differently, and this is how it looks: no drift as long as it looks like this.
    Otherwise(Mark, Mark),
}

/// The last pass, for whoever asks.
#[derive(Debug, Clone)]
pub(crate) struct Last {
    pub(crate) at: jiff::Timestamp,
    pub(crate) policy: PolicyId,
    pub(crate) outcome: Box<str>,
    /// What was decided about children, those apart about which there was nothing to do.
    pub(crate) decisions: Box<[Box<str>]>,
}

/// What is remembered of all objects.
#[derive(Debug, Default)]
pub(crate) struct Memories(Mutex<BTreeMap<ObjectKey, Memory>>);

impl Memories {
    /// What is remembered of an object; one that took the place of another starts anew. One pass at a time has it.
    pub(crate) fn take(&self, key: &ObjectKey, uid: &str) -> Memory {
        let known = lock(&self.0).get(key).filter(|memory| memory.uid == uid).cloned();
        known.unwrap_or_else(|| Memory { uid: uid.to_owned(), ..Memory::default() })
    }

    pub(crate) fn put(&self, key: &ObjectKey, memory: Memory) {
        lock(&self.0).insert(key.clone(), memory);
    }

    /// The watch is about to be told other needs of an object: what it was told before counts no longer, whether or not the
    /// pass that tells it comes to its end.
    pub(crate) fn doubt_needs(&self, key: &ObjectKey) {
        if let Some(memory) = lock(&self.0).get_mut(key) {
            memory.needs = None;
        }
    }

    /// A copy, for whoever asks.
    pub(crate) fn look(&self, key: &ObjectKey) -> Option<Memory> {
        lock(&self.0).get(key).cloned()
    }

    /// Objects of a type whose last pass was made after a swap of policies.
    pub(crate) fn made_since(&self, of: &ResourceType, swap: u64) -> usize {
        lock(&self.0)
            .iter()
            .filter(|(key, memory)| key.of == *of && memory.since >= swap && memory.last.is_some())
            .count()
    }

    /// How the objects of each type stand.
    pub(crate) fn tallies(&self) -> BTreeMap<ResourceType, Tally> {
        let memories = lock(&self.0);
        let mut tallies: BTreeMap<&ResourceType, Tally> = BTreeMap::new();
        for (key, memory) in &*memories {
            tallies.entry(&key.of).or_default().add(memory.ready, memory.unserved);
        }
        tallies.into_iter().map(|(of, tally)| (of.clone(), tally)).collect()
    }

    /// The object is gone.
    pub(crate) fn forget(&self, key: &ObjectKey) {
        lock(&self.0).remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_children_that_are_neither_planned_nor_there_nothing_is_remembered() {
        let mut memory = Memory::default();
        for child in 0..1_000 {
            memory.stored.insert(child, Stored::Exactly(child));
            memory.found.insert(child, child);
            memory.keep(&BTreeSet::from([child]), &BTreeSet::from([7]));
        }
        assert_eq!(memory.stored.keys().collect::<Vec<_>>(), [&7, &999]);
        assert_eq!(memory.found.keys().collect::<Vec<_>>(), [&999]);
    }

    #[test]
    fn an_object_that_took_the_place_of_another_counts_in_its_place() {
        let (memories, of) = (Memories::default(), ResourceType::new("x.io/v1", "Widget"));
        let key = ObjectKey::new(of.clone(), "n", "w");
        for uid in ["the first", "the second"] {
            let memory = memories.take(&key, uid);
            assert_eq!(memory.ready, None, "of {uid} nothing is known");
            let unserved = Some(Unserved::PolicyFailed);
            memories.put(&key, Memory { ready: Some(Readiness::False), unserved, ..memory });
        }
        let mut one = Tally::default();
        one.add(Some(Readiness::False), Some(Unserved::PolicyFailed));
        assert_eq!(memories.tallies(), BTreeMap::from([(of, one)]));
        memories.forget(&key);
        assert!(memories.tallies().is_empty());
    }
}
