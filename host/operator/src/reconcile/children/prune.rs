//! Deletes children that are no longer in the plan.
//!
//! The operator deletes children in the reverse order of ranks: first Services and routes, then workloads, and last
//! configuration and protection.
//!
//! A child stays while the watch on its type has an error. During the error, the policy may not see objects of this
//! type, and may leave the child out of the plan only for this reason. If the operator deleted the child, its data
//! would be lost.

use std::{collections::BTreeSet, time::Duration};

use kaos_policy::{
    contract::{Reference, ResourceType},
    describe::is_protection,
    stamp::{APPLIED_DIGEST, pod_template},
};
use kube::api::PropagationPolicy;
use serde_json::Value;

use crate::reconcile::{
    access::Access,
    children::{apply::ChildrenResult, decide::is_going, final_manifest::rank},
    error::CallError,
};
use crate::watch::{Seen, Watch};

/// The time until the next pass if children stay because their watch has an error. This pass is needed, because a watch
/// that works again causes no pass if no object has changed in the meantime.
pub(crate) const AGAIN: Duration = Duration::from_secs(15);

/// Returns group, kind and name of a child. Leaves out the version, because versions are only views of the same object.
fn identity(of: &ResourceType, name: &str) -> (String, String, String) {
    (of.group().to_owned(), of.kind.clone(), name.to_owned())
}

/// Returns the children of an object that are not in the plan and not being deleted yet. The result does not
/// contain children that another operator created to protect the object: without these children, every caller could
/// reach the object.
pub(crate) fn unwanted(watch: &Watch, uid: &str, plan: &[Value]) -> Vec<Seen> {
    let wanted: BTreeSet<_> = plan.iter().map(Reference::of_object).map(|it| identity(&it.of(), &it.name)).collect();
    let is_unwanted = |child: &Seen| !wanted.contains(&identity(&child.of, &child.name));
    let children = watch.children(uid).into_iter().filter(is_unwanted);
    let goes = |child: &Seen| match child.object() {
        Some(live) => !is_going(&live) && (!is_protection(&child.of) || carries_digest(&live)),
        None => !is_protection(&child.of),
    };
    let mut leaving: Vec<Seen> = children.filter(goes).collect();
    leaving.sort_by_key(|child| {
        let runs_pods = child.object().is_some_and(|live| pod_template(&live).is_some());
        std::cmp::Reverse(rank(&child.of, runs_pods))
    });
    leaving
}

/// Returns whether this operator applied a child.
fn carries_digest(live: &Value) -> bool {
    live["metadata"]["annotations"][APPLIED_DIGEST].is_string()
}

/// Removes from the list `unwanted` the children whose watch has an error, and records why these children stay. Returns
/// whether the list became shorter.
pub(crate) fn spare_unseen(watch: &Watch, unwanted: &mut Vec<Seen>, result: &mut ChildrenResult) -> bool {
    let before = unwanted.len();
    unwanted.retain(|child| {
        let Some(why) = watch.trouble_in(&child.of, &child.namespace) else { return true };
        let (kind, name) = (&child.of.kind, &child.name);
        let decision =
            format!("{kind} {name} stays although it is no longer in the plan, because {kind} is not watched: {why}");
        result.decisions.push(decision);
        false
    });
    unwanted.len() < before
}

/// Deletes these children. Records the deleted children, and the errors.
pub(crate) async fn prune(access: &Access, unwanted: &[Seen], result: &mut ChildrenResult) {
    for child in unwanted {
        if let Err(error) = remove(access, child, PropagationPolicy::Background).await {
            result.failed(error);
            continue;
        }
        tracing::info!(child = %format!("{} {}", child.of.kind, child.name), "deleted");
        let decision = format!("{} {} was deleted: it is no longer in the plan", child.of.kind, child.name);
        result.decisions.push(decision);
        result.wrote = true;
    }
}

/// Deletes a child only at the version that the operator saw: a later version of the child may have no owner any more.
pub(crate) async fn remove(access: &Access, child: &Seen, propagation: PropagationPolicy) -> Result<(), CallError> {
    let version = child.version.to_string();
    access.delete(&child.reference(), &child.uid, Some(&version), propagation).await.map(drop)
}
