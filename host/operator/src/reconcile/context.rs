//! The services that passes share. Each step gets the ones that it uses.

use std::{collections::BTreeMap, time::Duration};

use kaos_policy::contract::ResourceType;

use super::{
    access::Access, memory::Memories, policy_runner::PolicyRunner, status::declared_fields::DeclaredFields,
    sync_gate::SyncGate,
};
use crate::{catalogue::Answers, metrics::Tally};

/// The options of a pass; part of the operator's options.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    /// Time until the next look at an object without events.
    pub(crate) resync: Duration,
    /// Maximum time that cleanup may hold an object.
    pub(crate) cleanup: Duration,
}

/// The services that passes share.
pub(crate) struct Context {
    /// For steps that think.
    pub(crate) runner: PolicyRunner,
    /// For steps that act.
    pub(crate) access: Access,
    pub(crate) memories: Memories,
    pub(crate) sync_gate: SyncGate,
    pub(crate) declared_fields: DeclaredFields,
    pub(crate) rules: Rules,
}

impl Context {
    /// The number of objects of each kind that wait for their first pass with the current policy.
    pub(crate) fn awaiting_policy(&self) -> Vec<(ResourceType, usize)> {
        let Some(snapshot) = self.runner.catalogue.load() else { return Vec::new() };
        let awaiting = |(of, answers): (&ResourceType, &Answers)| {
            let made = self.memories.made_since(of, answers.since);
            (of.clone(), self.access.watch.keys(of).len().saturating_sub(made))
        };
        snapshot.kinds().map(awaiting).collect()
    }

    /// The counts of objects by state, for each kind. A kind with a policy counts even without objects.
    pub(crate) fn tallies(&self) -> BTreeMap<ResourceType, Tally> {
        let mut tallies = self.memories.tallies();
        if let Some(snapshot) = self.runner.catalogue.load() {
            for (of, _) in snapshot.kinds() {
                tallies.entry(of.clone()).or_default();
            }
        }
        tallies
    }
}
