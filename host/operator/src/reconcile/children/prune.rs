//! Children that are no longer wanted.
//!
//! While the watch on their type is in trouble they stay: a policy that is not shown a child may leave it out of a plan for
//! that reason alone, and data that is deleted does not come back.

use std::{collections::BTreeSet, time::Duration};

use kaos_policy::contract::{Reference, ResourceType};
use kube::api::PropagationPolicy;
use serde_json::Value;

use crate::reconcile::{
    api::Calls, children::apply::Applied, children::decide::is_going, context::Context, error::CallError,
};
use crate::watch::Seen;

/// After how long children that stay for a watch in trouble are looked at again. A watch that works again wakes nobody if
/// nothing changed meanwhile.
pub(crate) const AGAIN: Duration = Duration::from_secs(15);

/// A child by group, kind and name: versions are views on the same object.
fn identity(of: &ResourceType, name: &str) -> (String, String, String) {
    (of.group().to_owned(), of.kind.clone(), name.to_owned())
}

impl Context {
    /// Returns the children of an object that are not in the plan and not being deleted yet.
    pub(crate) fn unwanted(&self, uid: &str, plan: &[Value]) -> Vec<Seen> {
        let wanted: BTreeSet<_> =
            plan.iter().map(Reference::of_object).map(|it| identity(&it.of(), &it.name)).collect();
        let is_unwanted = |child: &Seen| !wanted.contains(&identity(&child.of, &child.name));
        let children = self.watch.children(uid).into_iter().filter(is_unwanted);
        children.filter(|child| !child.object().is_some_and(|live| is_going(&live))).collect()
    }

    /// Takes out those whose type is not followed now, and tells why they stay. Says whether there are any.
    pub(crate) fn spare_unseen(&self, unwanted: &mut Vec<Seen>, applied: &mut Applied) -> bool {
        let before = unwanted.len();
        unwanted.retain(|child| {
            let Some(why) = self.watch.trouble_in(&child.of, &child.namespace) else { return true };
            let (kind, name) = (&child.of.kind, &child.name);
            let decision =
                format!("{kind} {name} stays, although the plan has it no longer, while {kind} is not followed: {why}");
            applied.decisions.push(decision);
            false
        });
        unwanted.len() < before
    }

    /// Deletes these children. What was deleted, and what could not be, is noted.
    pub(crate) async fn prune(&self, unwanted: &[Seen], applied: &mut Applied) {
        for child in unwanted {
            if let Err(error) = self.remove(child, PropagationPolicy::Background).await {
                applied.failed(error);
                continue;
            }
            tracing::info!(child = %format!("{} {}", child.of.kind, child.name), "deleted");
            let decision = format!("{} {} was deleted: the plan has it no longer", child.of.kind, child.name);
            applied.decisions.push(decision);
            applied.wrote = true;
        }
    }

    /// Deletes exactly this version of a child. A later version may have no owner any more.
    pub(crate) async fn remove(&self, child: &Seen, propagation: PropagationPolicy) -> Result<(), CallError> {
        let served = self.served(&child.of)?;
        let calls = self.calls(&served, &child.namespace);
        let version = child.version.to_string();
        self.delete(&calls, &child.reference(), &child.uid, Some(&version), propagation).await.map(drop)
    }

    /// Deletes the object with this UID, at this version if one is given, and informs the watch. Returns whether it is
    /// gone at once. If not, it waits for finalizers, including those of the garbage collector.
    pub(crate) async fn delete(
        &self,
        calls: &Calls<'_>,
        which: &Reference,
        uid: &str,
        version: Option<&str>,
        propagation: PropagationPolicy,
    ) -> Result<bool, CallError> {
        let going = calls.delete(&which.name, uid, version, propagation).await?;
        if let Some(going) = &going {
            self.watch.wrote(going);
        } else {
            let namespace = which.namespace.as_deref().unwrap_or_default();
            self.watch.deleted(&which.of(), namespace, &which.name, uid);
        }
        Ok(going.is_none())
    }
}
