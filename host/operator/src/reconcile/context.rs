//! The services that passes share. Each step gets only the services that it uses.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use kaos_policy::contract::ResourceType;

use super::{
    access::Access, memory::Memories, policy_runner::PolicyRunner, status::declared_fields::DeclaredFields,
    sync_gate::SyncGate,
};
use crate::{catalogue::Answers, metrics::Tally, proofs::Proofs};

/// The options of the operator that a pass uses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    /// The time after which an object gets a pass even if nothing changed.
    pub(crate) resync: Duration,
    /// The maximum time for which cleanup delays the deletion of an object.
    pub(crate) cleanup: Duration,
}

/// The services that passes share.
pub(crate) struct Context {
    /// Runs policies, for the steps of a pass that do no I/O.
    pub(crate) runner: PolicyRunner,
    /// Access to the cluster, for the steps of a pass that do I/O.
    pub(crate) access: Access,
    pub(crate) memories: Memories,
    pub(crate) sync_gate: SyncGate,
    pub(crate) declared_fields: DeclaredFields,
    pub(crate) rules: Rules,
    /// The proofs that objects are settled; `None` if the operator makes no proofs.
    pub(crate) proofs: Option<Arc<Proofs>>,
}

impl Context {
    /// Returns, for each kind, the number of objects that wait for their first pass with the active policy.
    pub(crate) fn awaiting_policy(&self) -> Vec<(ResourceType, usize)> {
        let Some(snapshot) = self.runner.catalogue.load() else { return Vec::new() };
        let awaiting = |(of, answers): (&ResourceType, &Answers)| {
            let made = self.memories.made_since(of, answers.since);
            // Do not count objects that a rollout has not moved yet, because they wait for the rollout and not for a
            // pass.
            let keys = self.access.watch.keys(of);
            let moved = keys.iter().filter(|key| snapshot.is_moved(of, &key.namespace, &key.name)).count();
            (of.clone(), moved.saturating_sub(made))
        };
        snapshot.kinds().map(awaiting).collect()
    }

    /// Returns, for each kind, the numbers of objects by state. Includes kinds that have a policy but no objects.
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
