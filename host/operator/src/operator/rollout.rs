//! What a swap of policies leads to: other types are watched, and the objects concerned are looked at again, at the pace
//! of the queue.

use std::{collections::BTreeSet, sync::Arc};

use kaos_policy::contract::ResourceType;
use tokio::sync::watch;

use crate::{
    catalogue::Snapshot,
    queue::{Queue, Urgency},
    reconcile::Context,
    watch::{Coverage, ObjectKey},
};

/// Has the watch cover what the policies in force claim.
pub(super) fn cover(context: &Context) {
    if let Some(snapshot) = context.catalogue.load() {
        let mut coverage = coverage(&snapshot);
        // Objects of a kind that lost its policy are told so, those too that come later. Those of a kind that is answered for
        // in another version are the same objects.
        let (covered, remembered) = (context.watch.coverage(), context.catalogue.remembered());
        for of in covered.primaries().map(|(of, _)| of).chain(&remembered).filter(|of| !is_answered(&snapshot, of)) {
            coverage.keep(of);
        }
        context.watch.cover(coverage);
        context.metrics.policies(&snapshot.active(), &snapshot.able());
    }
}

/// Whether a policy answers for a kind, in whichever version.
fn is_answered(snapshot: &Snapshot, of: &ResourceType) -> bool {
    snapshot.kinds().any(|(answered, _)| answered.group_kind() == of.group_kind())
}

fn coverage(snapshot: &Snapshot) -> Coverage {
    let claims: Vec<_> = snapshot.kinds().flat_map(|(_, answers)| answers.claims()).collect();
    let mut coverage = Coverage::of(claims);
    for (of, answers) in snapshot.kinds() {
        for emitted in answers.emitted() {
            coverage.add_emitted(of, emitted.clone());
        }
    }
    coverage
}

/// Follows the catalogue for as long as there is one.
pub(super) async fn follow(context: Arc<Context>, queue: Queue, mut revisions: watch::Receiver<u64>) {
    // The first time, the watch wakes every object.
    let mut before = context.catalogue.load();
    loop {
        if revisions.changed().await.is_err() {
            return;
        }
        cover(&context);
        let now = context.catalogue.load();
        if let (Some(now), Some(before)) = (&now, &before) {
            for of in concerned(now, before) {
                let as_before = |key: &ObjectKey| match (now.of(of), before.of(of)) {
                    (Some(now), Some(before)) => now.are_in(&key.namespace, before),
                    _ => false,
                };
                for key in context.watch.keys(of).iter().filter(|key| !as_before(key)) {
                    queue.add(key, Urgency::Paced);
                }
            }
        }
        before = now;
    }
}

/// Every kind that something answers for, or did.
fn concerned<'a>(now: &'a Snapshot, before: &'a Snapshot) -> BTreeSet<&'a ResourceType> {
    now.kinds().chain(before.kinds()).map(|(of, _)| of).collect()
}
