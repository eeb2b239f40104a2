//! Collects the live children from which a policy computes the status.

use std::collections::BTreeMap;

use kaos_policy::{
    contract::{Child, Reference},
    render::Rendered,
    stamp::controller,
};
use serde_json::Value;

use crate::{
    reconcile::{
        access::Access,
        children::decide::{Owner, owner},
        status::observed_generation::is_unobserved,
    },
    watch::Seen,
};

/// Returns the live children of a plan. Without a plan, returns all children of the object. Also returns whether the
/// status of at least one child describes an earlier generation.
pub(super) async fn live_children(
    access: &Access,
    rendered: &Rendered,
    uid: &str,
    answers: &BTreeMap<Reference, Value>,
) -> (Vec<Child>, bool) {
    let mut unseen = false;
    if rendered.planned().is_none() {
        let mut children = Vec::new();
        for seen in access.watch.children(uid) {
            let live = if seen.is_known() { seen.object() } else { untaken(access, &seen).await };
            unseen |= live.as_ref().is_some_and(is_unobserved);
            children.extend(live.map(|live| Child::new(Reference::of_object(&live), Some(&live))));
        }
        return (children, unseen);
    }
    let mut child = |manifest: &Value| {
        let reference = Reference::of_object(manifest);
        let namespace = reference.namespace.as_deref().unwrap_or_default();
        let live = access.watch.live(&reference.of(), namespace, &reference.name).and_then(|seen| seen.object());
        let live = live.or_else(|| answers.get(&reference).cloned());
        // Leave out a child of another owner. A child without an owner counts only if it is planned to outlive the
        // object.
        let live = live.filter(|live| match owner(live, uid) {
            Owner::Ours => true,
            Owner::Orphan => controller(manifest).is_none(),
            Owner::Other(_) => false,
        });
        unseen |= live.as_ref().is_some_and(is_unobserved);
        Child::new(reference, live.as_ref())
    };
    let children = rendered.manifests().iter().map(&mut child).collect();
    (children, unseen)
}

/// Reads a child of an earlier operator: the watch shows only its metadata until a plan takes it over.
async fn untaken(access: &Access, child: &Seen) -> Option<Value> {
    let live = access.read(&child.reference()).await;
    let live = live.inspect_err(|error| tracing::debug!(%error, "could not read a child of an earlier operator"));
    live.ok()?.filter(|live| live["metadata"]["uid"] == *child.uid)
}
