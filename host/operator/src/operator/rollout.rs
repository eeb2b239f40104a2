//! Reacts to swaps: starts watches for new types, and queues the affected objects, whose passes the queue spreads over
//! time.

use std::{collections::BTreeSet, sync::Arc};

use kaos_policy::{
    contract::{Claim, ResourceType},
    policy::Policy,
};
use tokio::sync::watch;

use crate::{
    catalogue::Snapshot,
    left_out::LeftOut,
    queue::{Queue, Urgency},
    reconcile::Context,
    watch::{Claimed, Coverage, ObjectKey},
};

/// Makes the watch cover the types of all claims of the active policies.
pub(super) fn cover(context: &Context, left_out: &LeftOut) {
    cover_keeping(context, left_out, &context.access.watch.coverage());
}

/// Like [`cover`], but for the first active policies. The watch drops the types that only the standby covered.
pub(super) fn cover_first(context: &Context, left_out: &LeftOut) {
    cover_keeping(context, left_out, &Coverage::default());
}

/// Makes the watch of a waiting replica cover the types of all claims of these policies.
pub(super) fn cover_policies(context: &Context, policies: &[Arc<Policy>], left_out: &LeftOut) {
    let mut coverage = Coverage::default();
    policies
        .iter()
        .flat_map(|policy| &policy.descriptor().claims)
        .for_each(|claim| add(&mut coverage, claim, left_out));
    context.access.watch.cover(coverage);
}

/// Makes the watch cover the types of all claims of the active policies. Also keeps the kinds in `before` for which no
/// policy answers any more, so that the status of their objects reports the missing policy. A policy for another
/// version of such a kind counts as an answer, because both versions have the same objects.
fn cover_keeping(context: &Context, left_out: &LeftOut, before: &Coverage) {
    if let Some(snapshot) = context.runner.catalogue.load() {
        let mut coverage = coverage(&snapshot, left_out);
        let remembered = context.runner.catalogue.remembered();
        for of in before.primaries().map(|(of, _)| of).chain(&remembered).filter(|of| !is_answered(&snapshot, of)) {
            coverage.keep(of);
        }
        context.access.watch.cover(coverage);
        context.runner.metrics.policies(&snapshot.active(), &snapshot.able());
    }
}

/// Returns whether a policy answers for any version of a kind.
fn is_answered(snapshot: &Snapshot, of: &ResourceType) -> bool {
    snapshot.kinds().any(|(answered, _)| answered.group_kind() == of.group_kind())
}

fn coverage(snapshot: &Snapshot, left_out: &LeftOut) -> Coverage {
    let mut coverage = Coverage::default();
    for claim in snapshot.kinds().flat_map(|(_, answers)| answers.claims()) {
        add(&mut coverage, claim, left_out);
    }
    for (of, answers) in snapshot.kinds() {
        let is_left_out = |of: &ResourceType| answers.claims().any(|claim| left_out.has(claim, of));
        for emitted in answers.emitted().iter().filter(|of| !is_left_out(of)) {
            coverage.add_emitted(of, emitted.clone());
        }
    }
    coverage
}

fn add(coverage: &mut Coverage, claim: &Claim, left_out: &LeftOut) {
    let types = |types: &[ResourceType]| types.iter().filter(|of| !left_out.has(claim, of)).cloned().collect();
    let (emits, reads, wishes) = (types(&claim.emits), types(&claim.reads), types(&claim.wishes));
    coverage.add(&claim.primary, Claimed { emits, reads, wishes });
}

/// Reacts to the swaps of the catalogue, one after another.
pub(super) async fn follow(
    context: Arc<Context>,
    queue: Queue,
    mut revisions: watch::Receiver<u64>,
    left_out: LeftOut,
) {
    // The watch queues every object at startup, so the first snapshot queues nothing.
    let mut before = context.runner.catalogue.load();
    loop {
        if revisions.changed().await.is_err() {
            return;
        }
        cover(&context, &left_out);
        let now = context.runner.catalogue.load();
        if let (Some(now), Some(before)) = (&now, &before) {
            for of in concerned(now, before) {
                let as_before = |key: &ObjectKey| now.is_as_in(before, of, &key.namespace, &key.name);
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
