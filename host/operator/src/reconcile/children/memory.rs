//! The operator's memory of each child of an object, while the child is in the plan.

use std::collections::{BTreeMap, BTreeSet};

use kaos_policy::contract::Reference;
use tokio::time::Instant;

use crate::{
    hashing::hash,
    reconcile::{
        api::named,
        children::final_manifest::Wanted,
        children::rejected::Rejected,
        children::write_limit::{LimitReached, WriteLimit},
        error::{CallError, Class},
        mark::{Mark, child_mark},
    },
};

#[derive(Debug, Clone, Default)]
pub(crate) struct ChildrenMemory {
    by_child: BTreeMap<Mark, ChildMemory>,
    /// The last rejection of a whole plan by the API server.
    pub(crate) rejected_plan: Option<Rejected>,
    /// The planned children whose names are taken: an object of another owner already has the name.
    pub(crate) conflicts: BTreeSet<Reference>,
    /// The recent writes of each child.
    pub(crate) write_limit: WriteLimit,
    /// The message about a child whose writes another client undoes; `None` if there is no such child.
    pub(crate) undone: Option<String>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct ChildMemory {
    /// The form in which the API server stores the child. `None` while the operator does not know the form.
    pub(crate) stored: Option<Stored>,
    /// The last manifest of the child that the API server rejected.
    pub(crate) rejected: Option<Box<Rejected>>,
    /// A hash of the content that a ConfigMap had before this operator first wrote the ConfigMap.
    pub(crate) found: Option<Mark>,
}

impl ChildrenMemory {
    /// Returns the memory of a child; `None` if the operator remembers nothing about the child.
    pub(crate) fn get(&self, child: Mark) -> Option<&ChildMemory> {
        self.by_child.get(&child)
    }

    /// Returns the memory of a child, so that the caller can change it. Creates an empty memory if there is none.
    pub(crate) fn of(&mut self, child: Mark) -> &mut ChildMemory {
        self.by_child.entry(child).or_default()
    }

    pub(crate) fn forget_rejection(&mut self, child: Mark) {
        if let Some(child) = self.by_child.get_mut(&child) {
            child.rejected = None;
        }
    }

    /// Returns the rejection of the whole plan, and the rejections of single children.
    pub(crate) fn rejections(&self) -> impl Iterator<Item = &Rejected> {
        self.rejected_plan.iter().chain(self.by_child.values().filter_map(|child| child.rejected.as_deref()))
    }

    /// Forgets children that are not planned. If such a child still exists, keeps only the form in which the API server
    /// stores the child.
    pub(crate) fn keep(&mut self, planned: &BTreeSet<Mark>, there: &BTreeSet<Mark>) {
        self.by_child.retain(|mark, child| {
            let is_planned = planned.contains(mark);
            if !is_planned {
                (child.rejected, child.found) = (None, None);
            }
            is_planned || (there.contains(mark) && child.stored.is_some())
        });
    }

    /// Consumes a write token for the child. If no token is free, the error contains the delay. `reason` says why the
    /// operator writes the child.
    pub(crate) fn spend(&mut self, wanted: &Wanted, reason: &str) -> Result<(), CallError> {
        let (child, plan) = (child_mark(&wanted.reference()), hash(wanted.digest()));
        let (wait, message) = match self.write_limit.spend(child, plan, Instant::now()) {
            Ok(()) => return Ok(()),
            Err(LimitReached::Same(wait)) => {
                let undone = "another client undoes the operator's writes again and again";
                let message = format!(
                    "{undone} (last reason to write: {reason}): find the client that writes or deletes the child"
                );
                self.undone = Some(format!("{}: {message}", named(&wanted.reference())));
                (wait, message)
            }
            Err(LimitReached::Changed(wait)) => {
                let changes = "the plan of this child changes again and again";
                (
                    wait,
                    format!(
                        "{changes}: find the client that edits this object or an object to which this object refers"
                    ),
                )
            }
        };
        let what = format!("apply {}", named(&wanted.reference()));
        Err(CallError { what, class: Class::Transient(Some(wait)), message })
    }
}

/// The form in which the API server stores a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stored {
    /// The server stored the applied manifest unchanged, so a difference from the manifest is drift. The mark is the
    /// hash of this manifest.
    Exactly(Mark),
    /// The server stored the manifest in another form. The first mark is the hash of the manifest, the second is the
    /// hash of the stored form. While the child has this form, its differences from the manifest are not drift.
    Otherwise(Mark, Mark),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_that_are_neither_planned_nor_live_are_forgotten() {
        let mut memory = ChildrenMemory::default();
        for child in 0..1_000 {
            let stored = Some(Stored::Exactly(child));
            *memory.of(child) = ChildMemory { stored, found: Some(child), ..ChildMemory::default() };
            memory.keep(&BTreeSet::from([child]), &BTreeSet::from([7]));
        }
        assert_eq!(memory.by_child.keys().collect::<Vec<_>>(), [&7, &999]);
        let found = |child| memory.get(child).and_then(|child| child.found);
        assert_eq!((found(7), found(999)), (None, Some(999)));
    }
}
