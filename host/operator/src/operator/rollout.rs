//! What a swap of policies leads to: other types are watched, and the objects concerned are looked at again, at the pace
//! of the queue.

use std::{collections::BTreeMap, sync::Arc};

use kaos_policy::contract::ResourceType;
use tokio::sync::watch;

use crate::{
    catalogue::Snapshot,
    queue::{Queue, Urgency},
    reconcile::Context,
    watch::Coverage,
};

/// Has the watch cover what the policies in force claim.
pub(super) fn cover(context: &Context) {
    if let Some(snapshot) = context.catalogue.load() {
        let mut coverage = coverage(&snapshot);
        // Objects of a kind that lost its policy are told so, those too that come later.
        for (of, _) in context.watch.coverage().primaries() {
            coverage.keep(of);
        }
        context.watch.cover(coverage);
        context.metrics.policies(&snapshot.active());
    }
}

fn coverage(snapshot: &Snapshot) -> Coverage {
    let claims: Vec<_> = snapshot.kinds().flat_map(|(of, kind)| kind.claims(of)).collect();
    let mut coverage = Coverage::of(claims);
    for (of, kind) in snapshot.kinds() {
        for emitted in &kind.emitted {
            coverage.add_emitted(of, emitted.clone());
        }
    }
    coverage
}

/// Follows the catalogue for as long as there is one.
pub(super) async fn follow(context: Arc<Context>, queue: Queue, mut revisions: watch::Receiver<u64>) {
    let mut since: BTreeMap<ResourceType, u64> = BTreeMap::new();
    loop {
        let concerned = concerned(&context, &mut since);
        for of in concerned {
            for key in context.watch.keys(&of) {
                queue.add(&key, Urgency::Bulk);
            }
        }
        if revisions.changed().await.is_err() {
            return;
        }
        cover(&context);
    }
}

/// The kinds for which something else answers now, or nobody any more; none the first time, when the watch wakes every object.
fn concerned(context: &Context, since: &mut BTreeMap<ResourceType, u64>) -> Vec<ResourceType> {
    let Some(snapshot) = context.catalogue.load() else { return Vec::new() };
    let now: BTreeMap<ResourceType, u64> = snapshot.kinds().map(|(of, kind)| (of.clone(), kind.since)).collect();
    let before = std::mem::replace(since, now);
    let changed = before.into_iter().filter(|(of, before)| since.get(of) != Some(before));
    changed.map(|(of, _)| of).collect()
}
