//! Deletes children that are no longer in the plan.
//!
//! A child stays while the watch on its type has an error: the policy may have left the child out of the plan only
//! because it did not see the child. Deleted data would be lost.

use std::{collections::BTreeSet, time::Duration};

use kaos_policy::contract::{Reference, ResourceType};
use kube::api::PropagationPolicy;
use serde_json::Value;

use crate::reconcile::{access::Access, children::apply::ChildrenResult, children::decide::is_going, error::CallError};
use crate::watch::{Seen, Watch};

/// The time until the next pass if children stay because their watch has an error. If nothing changed, a watch that
/// works again causes no pass.
pub(crate) const AGAIN: Duration = Duration::from_secs(15);

/// Returns group, kind and name of a child. Leaves out the version, because versions are only views of the same object.
fn identity(of: &ResourceType, name: &str) -> (String, String, String) {
    (of.group().to_owned(), of.kind.clone(), name.to_owned())
}

/// Returns the children of an object that are not in the plan and are not being deleted yet.
pub(crate) fn unwanted(watch: &Watch, uid: &str, plan: &[Value]) -> Vec<Seen> {
    let wanted: BTreeSet<_> = plan.iter().map(Reference::of_object).map(|it| identity(&it.of(), &it.name)).collect();
    let is_unwanted = |child: &Seen| !wanted.contains(&identity(&child.of, &child.name));
    let children = watch.children(uid).into_iter().filter(is_unwanted);
    children.filter(|child| !child.object().is_some_and(|live| is_going(&live))).collect()
}

/// Removes children from the list if the watch on their type has an error, and records why they stay. Returns whether
/// it removed any children.
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

/// Deletes a child only at this version: at a later version, the child may have no owner any more.
pub(crate) async fn remove(access: &Access, child: &Seen, propagation: PropagationPolicy) -> Result<(), CallError> {
    let version = child.version.to_string();
    access.delete(&child.reference(), &child.uid, Some(&version), propagation).await.map(drop)
}
