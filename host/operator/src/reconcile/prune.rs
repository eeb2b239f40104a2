//! Deletes children that are no longer in the plan.

use std::collections::BTreeSet;

use kaos_policy::contract::{Reference, ResourceType};
use kube::api::PropagationPolicy;
use serde_json::Value;

use super::{api::Calls, apply::Applied, context::Context, decide::is_going, error::CallError};
use crate::watch::Seen;

/// Identifies a child by group, kind and name. The version is only a view of the same object.
fn identity(of: &ResourceType, name: &str) -> (String, String, String) {
    (of.group().to_owned(), of.kind.clone(), name.to_owned())
}

impl Context {
    /// Returns the children of an object that are not in the plan and not being deleted yet.
    pub(super) fn unwanted(&self, uid: &str, plan: &[Value]) -> Vec<Seen> {
        let wanted: BTreeSet<_> =
            plan.iter().map(Reference::of_object).map(|it| identity(&it.of(), &it.name)).collect();
        let is_unwanted = |child: &Seen| !wanted.contains(&identity(&child.of, &child.name));
        let children = self.watch.children(uid).into_iter().filter(is_unwanted);
        children.filter(|child| !child.object().is_some_and(|live| is_going(&live))).collect()
    }

    /// Deletes these children. Records deletions and failures in `applied`.
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
    pub(super) async fn remove(&self, child: &Seen, propagation: PropagationPolicy) -> Result<(), CallError> {
        let served = self.served(&child.of)?;
        let calls = self.calls(&served, &child.namespace);
        let version = child.version.to_string();
        self.delete(&calls, &child.reference(), &child.uid, Some(&version), propagation).await.map(drop)
    }

    /// Deletes the object with this UID, at this version if one is given, and informs the watch. Returns whether it is
    /// gone at once. If not, it waits for finalizers, including those of the garbage collector.
    pub(super) async fn delete(
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
