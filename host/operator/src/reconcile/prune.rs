//! Children that are no longer wanted.

use std::collections::BTreeSet;

use kaos_policy::contract::{Reference, ResourceType};
use kube::api::PropagationPolicy;
use serde_json::Value;

use super::{api::Calls, apply::Applied, context::Context, decide::is_going, error::CallError};
use crate::watch::Seen;

/// A child by group, kind and name: versions are views on the same object.
fn identity(of: &ResourceType, name: &str) -> (String, String, String) {
    (of.group().to_owned(), of.kind.clone(), name.to_owned())
}

impl Context {
    /// What an object owns, is not planned, and is not going already.
    pub(super) fn unwanted(&self, uid: &str, plan: &[Value]) -> Vec<Seen> {
        let wanted: BTreeSet<_> =
            plan.iter().map(Reference::of_object).map(|it| identity(&it.of(), &it.name)).collect();
        let is_unwanted = |child: &Seen| !wanted.contains(&identity(&child.of, &child.name));
        let children = self.watch.children(uid).into_iter().filter(is_unwanted);
        children.filter(|child| !child.object().is_some_and(|live| is_going(&live))).collect()
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

    /// Deletes this very child, as it was seen: another version of it may be nobody's by now.
    pub(super) async fn remove(&self, child: &Seen, propagation: PropagationPolicy) -> Result<(), CallError> {
        let served = self.served(&child.of)?;
        let calls = self.calls(&served, &child.namespace);
        let version = child.version.to_string();
        self.delete(&calls, &child.reference(), &child.uid, Some(&version), propagation).await.map(drop)
    }

    /// Deletes the object with this UID, at this version if there is one, and has the watch know. Says whether it is gone
    /// at once; otherwise it waits for finalizers, the collector's among them.
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
