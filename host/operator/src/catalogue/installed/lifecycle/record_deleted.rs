//! Recreates the PolicyRevision and the kept bytes of a serving revision after a user deleted them. The revision goes
//! on serving meanwhile.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use super::{Found, Lifecycle, PATIENCE, StepError};
use crate::{
    catalogue::installed::{records::Revision, store::Taken},
    package::Package,
};

impl Lifecycle {
    /// Writes the deleted records of serving revisions again, before any decision depends on records. Forgets all other
    /// deleted records.
    pub(super) async fn write_again(&mut self, found: &[Found]) -> Result<(), StepError> {
        let (served, others): (Vec<_>, Vec<_>) = self.records.erased().into_iter().partition(|it| self.is_let_in(it));
        for revision in others {
            self.records.forget(revision.metadata.name.as_deref().unwrap_or_default());
        }
        if served.is_empty() {
            return Ok(());
        }
        let (held, mut written) = (self.held(found), Ok(()));
        for revision in served {
            let name = revision.metadata.name.clone().unwrap_or_default();
            let is_there = found.iter().any(|found| found.source == revision.spec.source);
            if !is_there && !held.contains(&name) {
                self.records.forget(&name);
                continue;
            }
            written = written.and(self.write_one_again(name, &revision, found).await);
        }
        written
    }

    async fn write_one_again(&mut self, name: String, revision: &Revision, found: &[Found]) -> Result<(), StepError> {
        // The kept bytes may still exist: the garbage collector takes some time.
        let package = self.package_of(revision, found).await?;
        if !self.records.write_again(&name).await? {
            // The record was deleted once more. The watch will report this.
            return Ok(());
        }
        if let Some(package) = package {
            tracing::warn!(revision = name, "somebody deleted it, but it serves: it is written again");
            self.keep_soon(name, package);
        } else {
            tracing::error!(
                revision = name,
                "somebody deleted it, but it serves: it is written again, and what was kept of it is lost. The next \
                 operator cannot load it unless its ConfigMap is applied again"
            );
        }
        Ok(())
    }

    /// Returns whether a revision was admitted and is in the revision set.
    fn is_let_in(&self, revision: &Revision) -> bool {
        let was_let_in = revision.status.as_ref().is_some_and(|status| status.state.is_let_in());
        was_let_in && revision.metadata.name.as_ref().is_some_and(|name| self.revisions.entries.contains_key(name))
    }

    /// Keeps the bytes of a serving revision in the next round, unless they are kept.
    pub(super) fn keep_soon(&mut self, name: String, package: Arc<Package>) {
        self.unkept.insert(name, package);
        self.keep_due = None;
    }

    /// Keeps the missing bytes of serving revisions again. Returns when to try again: ConfigMaps with the same name may
    /// still be in deletion.
    pub(super) async fn keep_again(&mut self) -> Option<Duration> {
        if self.keep_due.is_none_or(|due| due <= Instant::now()) {
            for (name, package) in self.unkept.clone() {
                if self.keep_one_again(&name, &package).await {
                    self.unkept.remove(&name);
                }
            }
            self.keep_due = Some(Instant::now() + PATIENCE.0 * 10);
        }
        let due = self.keep_due.filter(|_| !self.unkept.is_empty());
        due.map(|due| due.saturating_duration_since(Instant::now()))
    }

    /// Returns whether this revision needs no further attempt.
    async fn keep_one_again(&self, name: &str, package: &Package) -> bool {
        let serves = self.records.status(name).state.is_let_in();
        let Some(revision) = self.records.get(name).filter(|_| serves) else { return true };
        let kept = match self.store.keeps(revision).await {
            Ok(true) => Ok(Ok(())),
            Ok(false) => self.store.keep(revision, package).await,
            Err(error) => Err(error),
        };
        match kept {
            Ok(Ok(())) => return true,
            Ok(Err(Taken(config_map))) => {
                tracing::warn!(revision = name, config_map, "it is kept as soon as this ConfigMap is gone");
            }
            Err(error) => tracing::warn!(revision = name, %error, "it is not kept yet, which is tried again"),
        }
        false
    }
}
