//! Recreates the PolicyRevision and the stored bytes of a serving revision after a user deleted them. The revision
//! keeps serving in the meantime. The operator also recreates both for a revision that yields during a rollout.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use super::{BACKOFF, Found, Lifecycle, StepError};
use crate::{catalogue::installed::store::Taken, package::Package};

impl Lifecycle {
    /// Recreates the deleted PolicyRevision of a serving revision.
    pub(super) async fn recreate(&mut self, name: &str, found: &[Found]) -> Result<(), StepError> {
        let Some(revision) = self.records.get(name).cloned() else { return Ok(()) };
        // Read the stored bytes before the write: they may still exist, because the garbage collector takes some time.
        let package = self.package_of(&revision, found).await?;
        if !self.records.write_again(name).await? {
            // A user deleted the PolicyRevision once more. The watch will report the deletion.
            return Ok(());
        }
        if let Some(package) = package {
            tracing::warn!(revision = name, "the record of a serving revision was deleted; writing it again");
            self.keep_soon(name.to_owned(), package);
        } else {
            tracing::error!(
                revision = name,
                "the record of a serving revision was deleted; writing it again. The stored bytes are lost: apply the \
                 revision's ConfigMap again, because otherwise the operator cannot load the revision after a restart"
            );
        }
        Ok(())
    }

    /// Makes the next round store the bytes of a serving revision, unless they are already stored.
    pub(super) fn keep_soon(&mut self, name: String, package: Arc<Package>) {
        self.unkept.insert(name, package);
        self.keep_due = None;
    }

    /// Stores the missing bytes of serving revisions again. Returns the delay before the next attempt, or `None` if no
    /// bytes are missing. An attempt fails while the deletion of ConfigMaps with the same names has not finished.
    pub(super) async fn keep_again(&mut self) -> Option<Duration> {
        if self.keep_due.is_none_or(|due| due <= Instant::now()) {
            for (name, package) in self.unkept.clone() {
                if self.keep_one_again(&name, &package).await {
                    self.unkept.remove(&name);
                }
            }
            self.keep_due = Some(Instant::now() + BACKOFF.first * 10);
        }
        let due = self.keep_due.filter(|_| !self.unkept.is_empty());
        due.map(|due| due.saturating_duration_since(Instant::now()))
    }

    /// Stores the bytes of one revision if they are missing. Returns true if this revision needs no further attempt.
    async fn keep_one_again(&self, name: &str, package: &Package) -> bool {
        let serves = self.records.status(name).state.is_let_in() || self.facts().yields(name);
        let Some(revision) = self.records.get(name).filter(|_| serves) else { return true };
        let kept = match self.store.keeps(revision).await {
            Ok(true) => Ok(Ok(())),
            Ok(false) => self.store.keep(revision, package).await,
            Err(error) => Err(error),
        };
        match kept {
            Ok(Ok(())) => return true,
            Ok(Err(Taken(config_map))) => {
                tracing::warn!(
                    revision = name,
                    config_map,
                    "revision bytes cannot be stored until this ConfigMap is deleted"
                );
            }
            Err(error) => tracing::warn!(revision = name, %error, "revision bytes could not be stored; retrying"),
        }
        false
    }
}
