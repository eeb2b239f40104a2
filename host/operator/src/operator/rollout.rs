//! Follows swaps: starts watches for new types, and queues the affected objects at the pace of the queue.

use std::{collections::BTreeSet, sync::Arc};

use kaos_policy::contract::ResourceType;
use tokio::sync::watch;

use crate::{
    catalogue::Snapshot,
    queue::{Queue, Urgency},
    reconcile::Context,
    watch::{Claimed, Coverage, ObjectKey},
};

/// Makes the watch cover the types that the active policies claim.
pub(super) fn cover(context: &Context) {
    if let Some(snapshot) = context.runner.catalogue.load() {
        let mut coverage = coverage(&snapshot);
        // Keep watching kinds that lost their policy: the status of their objects must report this, also for objects
        // that are created later. If a policy claims another version of a kind, it answers for the same objects, so
        // such a kind did not lose its policy.
        let (covered, remembered) = (context.access.watch.coverage(), context.runner.catalogue.remembered());
        for of in covered.primaries().map(|(of, _)| of).chain(&remembered).filter(|of| !is_answered(&snapshot, of)) {
            coverage.keep(of);
        }
        context.access.watch.cover(coverage);
        context.runner.metrics.policies(&snapshot.active(), &snapshot.able());
    }
}

/// Returns whether a policy answers for a kind, in any version.
fn is_answered(snapshot: &Snapshot, of: &ResourceType) -> bool {
    snapshot.kinds().any(|(answered, _)| answered.group_kind() == of.group_kind())
}

fn coverage(snapshot: &Snapshot) -> Coverage {
    let mut coverage = Coverage::default();
    for claim in snapshot.kinds().flat_map(|(_, answers)| answers.claims()) {
        let types = |types: &[ResourceType]| types.iter().cloned().collect();
        let (emits, reads, wishes) = (types(&claim.emits), types(&claim.reads), types(&claim.wishes));
        coverage.add(&claim.primary, Claimed { emits, reads, wishes });
    }
    for (of, answers) in snapshot.kinds() {
        for emitted in answers.emitted() {
            coverage.add_emitted(of, emitted.clone());
        }
    }
    coverage
}

/// Follows the swaps of the catalogue.
pub(super) async fn follow(context: Arc<Context>, queue: Queue, mut revisions: watch::Receiver<u64>) {
    // The watch queues every object at startup, so the first snapshot needs no other action.
    let mut before = context.runner.catalogue.load();
    loop {
        if revisions.changed().await.is_err() {
            return;
        }
        cover(&context);
        let now = context.runner.catalogue.load();
        if let (Some(now), Some(before)) = (&now, &before) {
            for of in concerned(now, before) {
                let as_before = |key: &ObjectKey| match (now.of(of), before.of(of)) {
                    (Some(now), Some(before)) => now.are_in(&key.namespace, before),
                    _ => false,
                };
                for key in context.access.watch.keys(of).iter().filter(|key| !as_before(key)) {
                    queue.add(key, Urgency::Paced);
                }
            }
        }
        before = now;
    }
}

/// Returns every kind that a policy answers for, or answered for before the swap.
fn concerned<'a>(now: &'a Snapshot, before: &'a Snapshot) -> BTreeSet<&'a ResourceType> {
    now.kinds().chain(before.kinds()).map(|(of, _)| of).collect()
}
