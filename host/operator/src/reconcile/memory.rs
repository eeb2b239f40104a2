//! The operator's memory of each object between passes. The operator works correctly after a restart, although it loses
//! this memory.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use kaos_policy::{
    contract::{Need, Reference, ResourceType},
    digest::Digest,
    policy::PolicyId,
    render::DecisionId,
};
use tokio::time::Instant;

use crate::{
    locking::lock,
    metrics::{Readiness, Tally, Unserved},
    proofs::ProofState,
    reconcile::{children::memory::ChildrenMemory, mark::Mark},
    trace::JoinedTrace,
    watch::ObjectKey,
};

/// The operator's memory of one object, for each step of a pass.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memory {
    pub(crate) uid: String,
    pub(crate) plan: PlanMemory,
    pub(crate) children: ChildrenMemory,
    pub(crate) finalizers: FinalizersMemory,
    pub(crate) status: StatusMemory,
    /// The number of consecutive passes that failed because of the API server.
    pub(crate) failures: u32,
    /// The reason why the expected policy does not serve the object, from the last pass that wrote a status.
    pub(crate) unserved: Option<Unserved>,
    /// The number of the last swap of policies at the time of the last pass.
    pub(crate) since: u64,
    pub(crate) last: Option<Last>,
    pub(crate) trace: JoinedTrace,
    /// Whether the operator has a proof that the object is settled.
    pub(crate) proof: ProofState,
}

/// The digest of each referenced object at its last read; `None` for a missing object.
pub(crate) type Read = BTreeMap<Reference, Option<String>>;

/// The operator's memory of the plan and its inputs.
#[derive(Debug, Clone, Default)]
pub(crate) struct PlanMemory {
    /// A hash of the needs that the watch follows now.
    pub(crate) followed: Option<Mark>,
    /// The needs of all policies that the last pass asked, if a policy failed and the pass also asked predecessors. The
    /// next pass asks each of these policies again, so the watch must follow their needs.
    pub(crate) needed: Vec<Need>,
    /// The digests of the ConfigMaps and Secrets that the plan's pods use, from their last reads.
    pub(crate) read: Read,
    /// A hash of the last plan that passed its dry run.
    pub(crate) rehearsed: Option<Mark>,
    /// The last decision of the policies.
    pub(crate) decision: Option<DecisionId>,
    /// The last decision of the active policies, then of each fallback that the pass asked. The flight recorder
    /// compares later decisions with them.
    pub(crate) decided: Vec<Decided>,
    /// The time at which the first plan began to wait for objects that it names.
    pub(crate) waits_since: Option<Instant>,
}

/// A decision of the policies, as far as the next pass needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decided {
    /// The number of revisions that the operator left out before it asked these policies.
    pub(crate) depth: usize,
    pub(crate) decision: DecisionId,
    /// A hash of the manifests; `None` without a plan.
    pub(crate) plan: Option<Mark>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct FinalizersMemory {
    /// The finalizer that the last plan requested.
    pub(crate) asked: Option<String>,
    /// Finalizers of the object that no setting or policy names. The value is `true` if this operator added the
    /// finalizer.
    pub(crate) put_on: BTreeMap<String, bool>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct StatusMemory {
    /// A hash of the computed and the live status together. Set only if the two still differ after a write, so that the
    /// operator does not write this status again.
    pub(crate) settled: Option<Mark>,
    /// Whether this process wrote the status. Such a write includes the takeover of the status from an earlier
    /// operator.
    pub(crate) is_ours: bool,
    /// The time at which the operator began to wait until controllers have observed changed children.
    pub(crate) unobserved_since: Option<Instant>,
    /// The readiness in the last written status.
    pub(crate) ready: Option<Readiness>,
}

/// The outcome of a pass that applied its plan.
pub(crate) const APPLIED: &str = "applied";

/// The facts about the last pass, for the debug page that explains an object.
#[derive(Debug, Clone)]
pub(crate) struct Last {
    pub(crate) at: jiff::Timestamp,
    pub(crate) policy: PolicyId,
    pub(crate) outcome: Box<str>,
    /// The decisions about children, except for children that already matched the plan.
    pub(crate) decisions: Box<[Box<str>]>,
}

/// The memories of all objects. All clones share the same memories.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memories(Arc<Mutex<BTreeMap<ObjectKey, Memory>>>);

impl Memories {
    /// Returns a copy of an object's memory. An object that replaced another object of the same name starts with an
    /// empty memory. A copy is safe, because only one pass at a time works on an object.
    pub(crate) fn take(&self, key: &ObjectKey, uid: &str) -> Memory {
        let known = lock(&self.0).get(key).filter(|memory| memory.uid == uid).cloned();
        known.unwrap_or_else(|| Memory { uid: uid.to_owned(), ..Memory::default() })
    }

    pub(crate) fn put(&self, key: &ObjectKey, memory: Memory) {
        lock(&self.0).insert(key.clone(), memory);
    }

    /// Invalidates the stored hash of an object's needs, because the watch is about to get other needs. So the hash is
    /// invalid even if the pass is aborted.
    pub(crate) fn doubt_needs(&self, key: &ObjectKey) {
        if let Some(memory) = lock(&self.0).get_mut(key) {
            memory.plan.followed = None;
        }
    }

    /// Returns a copy of an object's memory, for the debug page that explains the object. Returns `None` if there is
    /// none.
    pub(crate) fn look(&self, key: &ObjectKey) -> Option<Memory> {
        lock(&self.0).get(key).cloned()
    }

    /// Returns the number of objects of a type that had a pass since this swap of policies.
    pub(crate) fn made_since(&self, of: &ResourceType, swap: u64) -> usize {
        lock(&self.0)
            .iter()
            .filter(|(key, memory)| key.of == *of && memory.since >= swap && memory.last.is_some())
            .count()
    }

    /// Returns the numbers of objects by state, for each type.
    pub(crate) fn tallies(&self) -> BTreeMap<ResourceType, Tally> {
        let memories = lock(&self.0);
        let mut tallies: BTreeMap<&ResourceType, Tally> = BTreeMap::new();
        for (key, memory) in &*memories {
            tallies.entry(&key.of).or_default().add(memory.status.ready, memory.unserved);
        }
        tallies.into_iter().map(|(of, tally)| (of.clone(), tally)).collect()
    }

    /// Returns the objects whose last pass applied the plan, and which have no proof but may get one.
    pub(crate) fn unproven(&self) -> Vec<ObjectKey> {
        let is_unproven = |memory: &Memory| {
            memory.proof == ProofState::Open && memory.last.as_ref().is_some_and(|last| &*last.outcome == APPLIED)
        };
        let memories = lock(&self.0);
        memories.iter().filter(|(_, memory)| is_unproven(memory)).map(|(key, _)| key.clone()).collect()
    }

    /// Returns the objects that have a proof, each with the digest of its proof.
    pub(crate) fn proven(&self) -> Vec<(ObjectKey, Digest)> {
        let proven = |(key, memory): (&ObjectKey, &Memory)| match memory.proof {
            ProofState::Settled(digest) => Some((key.clone(), digest)),
            ProofState::Open | ProofState::Impossible => None,
        };
        lock(&self.0).iter().filter_map(proven).collect()
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
    fn an_object_that_replaced_another_starts_with_an_empty_memory() {
        let (memories, of) = (Memories::default(), ResourceType::new("x.io/v1", "Widget"));
        let key = ObjectKey::new(of.clone(), "n", "w");
        for uid in ["the first", "the second"] {
            let memory = memories.take(&key, uid);
            assert_eq!(memory.status.ready, None, "nothing is known of {uid}");
            let unserved = Some(Unserved::PolicyFailed);
            let status = StatusMemory { ready: Some(Readiness::False), ..StatusMemory::default() };
            memories.put(&key, Memory { status, unserved, ..memory });
        }
        let mut one = Tally::default();
        one.add(Some(Readiness::False), Some(Unserved::PolicyFailed));
        assert_eq!(memories.tallies(), BTreeMap::from([(of, one)]));
        memories.forget(&key);
        assert!(memories.tallies().is_empty());
    }
}
