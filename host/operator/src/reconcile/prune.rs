//! Children that are no longer wanted.

use std::collections::BTreeSet;

use kaos_policy::contract::{Reference, ResourceType};

use super::{api::Calls, context::Context, decide::is_going, error::CallError};
use crate::watch::{Seen, Served};

/// A child by group, kind and name: versions are views on the same object.
fn identity(of: &ResourceType, name: &str) -> (String, String, String) {
    (of.group().to_owned(), of.kind.clone(), name.to_owned())
}

impl Context {
    /// Deletes what an object owns and is not among these children. Says what was deleted.
    pub(crate) async fn prune(&self, uid: &str, wanted: &[Reference]) -> Result<Vec<String>, CallError> {
        let wanted: BTreeSet<_> = wanted.iter().map(|child| identity(&child.of(), &child.name)).collect();
        let mut deleted = Vec::new();
        for child in self.watch.children(uid) {
            let is_wanted = wanted.contains(&identity(&child.of, &child.name));
            if is_wanted || child.object().is_some_and(|live| is_going(&live)) {
                continue;
            }
            let served = self.served(&child.of)?;
            self.remove(&served, &child).await?;
            tracing::info!(child = %format!("{} {}", child.of.kind, child.name), "deleted");
            deleted.push(format!("{} {} was deleted: the plan has it no longer", child.of.kind, child.name));
        }
        Ok(deleted)
    }

    /// Deletes this very child.
    pub(super) async fn remove(&self, served: &Served, child: &Seen) -> Result<(), CallError> {
        let calls = self.calls(served, &child.namespace);
        self.delete(&calls, &child.reference(), &child.uid, None).await.map(drop)
    }

    /// Deletes the object with this UID, at this version if there is one, and has the watch know. Says whether it is gone
    /// at once; otherwise it waits for finalizers.
    pub(super) async fn delete(
        &self,
        calls: &Calls<'_>,
        which: &Reference,
        uid: &str,
        version: Option<&str>,
    ) -> Result<bool, CallError> {
        let going = calls.delete(&which.name, uid, version).await?;
        if let Some(going) = &going {
            self.watch.wrote(going);
        } else {
            let namespace = which.namespace.as_deref().unwrap_or_default();
            self.watch.deleted(&which.of(), namespace, &which.name, uid);
        }
        Ok(going.is_none())
    }
}
