//! Children that are no longer wanted.

use std::collections::BTreeSet;

use kaos_policy::contract::{Reference, ResourceType};
use kube::api::PropagationPolicy;

use super::{api::Calls, apply::Applied, context::Context, decide::is_going, error::CallError};
use crate::watch::Seen;

/// A child by group, kind and name: versions are views on the same object.
fn identity(of: &ResourceType, name: &str) -> (String, String, String) {
    (of.group().to_owned(), of.kind.clone(), name.to_owned())
}

impl Context {
    /// Deletes what an object owns and is not among these children. What was deleted, and what could not be, is noted.
    pub(crate) async fn prune(&self, uid: &str, wanted: &[Reference], applied: &mut Applied) {
        let wanted: BTreeSet<_> = wanted.iter().map(|child| identity(&child.of(), &child.name)).collect();
        for child in self.watch.children(uid) {
            let is_wanted = wanted.contains(&identity(&child.of, &child.name));
            if is_wanted || child.object().is_some_and(|live| is_going(&live)) {
                continue;
            }
            if let Err(error) = self.remove(&child, PropagationPolicy::Background).await {
                applied.failed(error);
                continue;
            }
            tracing::info!(child = %format!("{} {}", child.of.kind, child.name), "deleted");
            let decision = format!("{} {} was deleted: the plan has it no longer", child.of.kind, child.name);
            applied.decisions.push(decision);
            applied.wrote = true;
        }
    }

    /// Deletes this very child.
    pub(super) async fn remove(&self, child: &Seen, propagation: PropagationPolicy) -> Result<(), CallError> {
        let served = self.served(&child.of)?;
        let calls = self.calls(&served, &child.namespace);
        self.delete(&calls, &child.reference(), &child.uid, None, propagation).await.map(drop)
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
