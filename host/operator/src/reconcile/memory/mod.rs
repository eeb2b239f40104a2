//! The operator's memory of each object between passes. It is small, and a restart may lose all of it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Mutex,
};

use kaos_policy::{
    contract::{Need, Reference, ResourceType},
    policy::PolicyId,
};
use tokio::time::Instant;

use crate::reconcile::{
    api::named,
    children::final_manifest::Wanted,
    children::rejected::Rejected,
    children::write_limit::{Effort, Spent},
    error::{CallError, Class},
    mark::{Mark, child_mark},
    resolve::config_hash::Read,
};
use crate::{
    hashing::hash,
    locking::lock,
    metrics::{Readiness, Tally, Unserved},
    watch::ObjectKey,
};

/// The memory of one object.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memory {
    pub(crate) uid: String,
    /// A hash of the needs that the watch follows.
    pub(crate) needs: Option<Mark>,
    /// While a fallback serves: the needs of every policy that was asked, because the next pass asks each of them
    /// again.
    pub(crate) needed: Vec<Need>,
    /// How the server stores each applied child.
    pub(crate) stored: BTreeMap<Mark, Stored>,
    /// Names that another owner has.
    pub(crate) conflicts: BTreeSet<Reference>,
    /// The rejected manifest of each child.
    pub(crate) rejected: BTreeMap<Mark, Rejected>,
    /// The recent writes of each child.
    pub(crate) effort: Effort,
    /// The message about a child whose writes another client undoes.
    pub(crate) undone: Option<String>,
    /// The plan that passed its dry run.
    pub(crate) rehearsed: Option<Mark>,
    /// A status that differs from the computed one although the operator cannot or need not change it.
    pub(crate) status: Option<Mark>,
    /// Whether this process wrote the status. If so, nothing in it is left to take over.
    pub(crate) told: bool,
    /// Number of passes in a row that the API server failed.
    pub(crate) failures: u32,
    /// Since when the first plan has been waiting for objects that it names.
    pub(crate) awaiting: Option<Instant>,
    /// Since when some children have been waiting for their controllers.
    pub(crate) unseen: Option<Instant>,
    /// The content of each ConfigMap that existed before this operator.
    pub(crate) found: BTreeMap<Mark, Mark>,
    /// The finalizer that the last plan requested.
    pub(crate) finalizer: Option<String>,
    /// Finalizers without a name in settings or policies, and whether this operator added them.
    pub(crate) put_on: BTreeMap<String, bool>,
    /// The content that the pods of the plan refer to, as last read.
    pub(crate) read: Read,
    /// The readiness in the last written status.
    pub(crate) ready: Option<Readiness>,
    /// The reason why the expected policy does not serve the object, from the last pass that wrote a status.
    pub(crate) unserved: Option<Unserved>,
    /// The number of the last swap of policies before the last pass.
    pub(crate) since: u64,
    pub(crate) last: Option<Last>,
}

impl Memory {
    /// Forgets children that are not planned. How the server stores a child is kept while the child exists.
    pub(crate) fn keep(&mut self, planned: &BTreeSet<Mark>, there: &BTreeSet<Mark>) {
        self.stored.retain(|child, _| planned.contains(child) || there.contains(child));
        self.rejected.retain(|child, _| planned.contains(child));
        self.found.retain(|child, _| planned.contains(child));
    }
}

impl Memory {
    /// Consumes a write token for the child, or returns the delay until one is free. `reason` is the reason for the
    /// write.
    pub(crate) fn spend(&mut self, wanted: &Wanted, reason: &str) -> Result<(), CallError> {
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
    /// The server stored the manifest with this mark exactly as applied. A difference is drift.
    Exactly(Mark),
    /// The server stored the manifest in another form, with this mark. While the child keeps this form, there is no
    /// drift.
    Otherwise(Mark, Mark),
}

/// The last pass, for the explain page.
#[derive(Debug, Clone)]
pub(crate) struct Last {
    pub(crate) at: jiff::Timestamp,
    pub(crate) policy: PolicyId,
    pub(crate) outcome: Box<str>,
    /// The decisions about children, except where there was nothing to do.
    pub(crate) decisions: Box<[Box<str>]>,
}

/// The memories of all objects.
#[derive(Debug, Default)]
pub(crate) struct Memories(Mutex<BTreeMap<ObjectKey, Memory>>);

impl Memories {
    /// Returns a copy of an object's memory. An object that replaced another one starts with an empty memory. Only one
    /// pass at a time uses it.
    pub(crate) fn take(&self, key: &ObjectKey, uid: &str) -> Memory {
        let known = lock(&self.0).get(key).filter(|memory| memory.uid == uid).cloned();
        known.unwrap_or_else(|| Memory { uid: uid.to_owned(), ..Memory::default() })
    }

    pub(crate) fn put(&self, key: &ObjectKey, memory: Memory) {
        lock(&self.0).insert(key.clone(), memory);
    }

    /// Invalidates the stored needs of an object, because the watch is about to get other needs. They stay invalid even
    /// if the pass is aborted.
    pub(crate) fn doubt_needs(&self, key: &ObjectKey) {
        if let Some(memory) = lock(&self.0).get_mut(key) {
            memory.needs = None;
        }
    }

    /// Returns a copy, for the explain page.
    pub(crate) fn look(&self, key: &ObjectKey) -> Option<Memory> {
        lock(&self.0).get(key).cloned()
    }

    /// Number of objects of a type whose last pass came after this swap of policies.
    pub(crate) fn made_since(&self, of: &ResourceType, swap: u64) -> usize {
        lock(&self.0)
            .iter()
            .filter(|(key, memory)| key.of == *of && memory.since >= swap && memory.last.is_some())
            .count()
    }

    /// The counts of objects by state, for each type.
    pub(crate) fn tallies(&self) -> BTreeMap<ResourceType, Tally> {
        let memories = lock(&self.0);
        let mut tallies: BTreeMap<&ResourceType, Tally> = BTreeMap::new();
        for (key, memory) in &*memories {
            tallies.entry(&key.of).or_default().add(memory.ready, memory.unserved);
        }
        tallies.into_iter().map(|(of, tally)| (of.clone(), tally)).collect()
    }

    /// Forgets an object that is gone.
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
