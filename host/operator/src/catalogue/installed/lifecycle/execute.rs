//! Executes the planned actions, one after another. If an action fails, the operator reports the error and continues
//! with the other actions.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use kaos_crds::{PolicyRevisionStatus, PolicyRollout, RevisionState};
use tokio::time::Instant;

use super::{
    Found, LOOK_AGAIN, Lifecycle, StepError, Transition,
    facts::{Facts, SourceRevision},
    plan::{Action, Observed, ServiceFailure, plan},
    restoring::{LoadResult, age_of},
    rollout::{RETURNED, ROLLING_OUT, end_rollout},
    transition::SOURCE_DELETED,
};

/// The status reason of a quarantined revision.
pub(super) const FAILED: &str = "FailedInService";

/// The result of executing all actions that are due.
pub(super) struct Executed {
    /// The error of the first action that failed.
    pub(super) done: Result<(), StepError>,
    /// Whether the operator failed to restore the predecessor of a quarantined revision.
    pub(super) lacks_predecessor: bool,
}

impl Lifecycle {
    /// Returns the PolicyRevisions and the admitted revisions.
    pub(super) fn facts(&self) -> Facts<'_> {
        Facts { records: self.records.all(), revisions: &self.revisions }
    }

    fn observe<'a>(
        &'a self,
        found: &'a [Found],
        failed: &BTreeMap<String, ServiceFailure>,
        is_compiled: &'a dyn Fn(&str) -> bool,
    ) -> Observed<'a> {
        let package = |found: &'a Found| SourceRevision {
            source: &found.source,
            revision: self.name_of(found),
            created: &found.age.created,
            is_of_process: self.defaults.is_of_process(&found.source),
        };
        Observed {
            facts: self.facts(),
            packages: found.iter().map(package).collect(),
            deleted: self.records.deleted().collect(),
            failed: failed.clone(),
            is_compiled,
            due: &self.due,
            now: Instant::now(),
        }
    }

    /// Returns the delay until the next attempt to restore a predecessor, or `None` if no attempt is pending.
    pub(super) fn next_restoration(&self, found: &[Found]) -> Option<Duration> {
        let is_compiled = |_: &str| false;
        let observed = self.observe(found, &BTreeMap::new(), &is_compiled);
        let due = observed.next_restoration()?;
        Some(due.saturating_duration_since(observed.now))
    }

    /// Plans and executes actions until no action is due. `failed` are the revisions that failed in service. One call
    /// does not try a failed action again.
    pub(super) async fn execute_all(&mut self, found: &[Found], failed: &BTreeMap<String, ServiceFailure>) -> Executed {
        let mut executed = Executed { done: Ok(()), lacks_predecessor: false };
        let (mut tried, mut ready) = (BTreeSet::new(), BTreeSet::new());
        loop {
            let is_compiled = |name: &str| ready.contains(name) || self.is_loadable(name);
            let actions = plan(&self.observe(found, failed, &is_compiled));
            let Some(action) = actions.into_iter().find(|action| !tried.contains(action)) else { return executed };
            tried.insert(action.clone());
            if let Action::Compile { name, is_vacant } = action {
                if self.compile(&name, is_vacant, found).await {
                    ready.insert(name);
                }
                continue;
            }
            let restores = matches!(action, Action::Restore { .. });
            if let Err(error) = self.execute(action, found).await {
                executed.lacks_predecessor |= restores;
                executed.done = executed.done.and(Err(error));
            }
        }
    }

    /// Executes one action.
    pub(super) async fn execute(&mut self, action: Action, found: &[Found]) -> Result<(), StepError> {
        match action {
            Action::Recreate(name) => self.recreate(&name, found).await?,
            Action::Forget(name) => self.records.forget(&name),
            Action::Create(at, name) => {
                if let Some(package) = found.get(at)
                    && let Some(held) = &package.held
                {
                    self.records.create(&name, self.spec_of(package, held)).await?;
                }
            }
            Action::Replace { name, by } => {
                let message = format!("{by} serves instead of this revision");
                self.enter_or_owe(&name, Transition::new(RevisionState::Superseded, "Replaced", message), end).await;
            }
            Action::Retire(name) => {
                let message = "the revision's ConfigMap was deleted, or no longer contains a policy";
                let ended = Transition::new(RevisionState::Superseded, SOURCE_DELETED, message);
                let now = self.tools.clock.now();
                let keep_rollout = |status: &mut PolicyRevisionStatus| {
                    let rollout = status.rollout.take().filter(PolicyRollout::is_open);
                    end(status);
                    // Keep an open rollout in the status: it shows that this revision did not serve all objects. So a
                    // renamed package does not take this revision as its predecessor.
                    status.rollout = rollout;
                    end_rollout(&mut status.rollout, "ended", now);
                };
                self.enter_or_owe(&name, ended, keep_rollout).await;
            }
            Action::Yield { name, by } => {
                let message = format!("this revision serves the objects that the rollout of {by} has not moved yet");
                self.enter_or_owe(&name, Transition::new(RevisionState::Yielding, ROLLING_OUT, message), |_| {}).await;
            }
            Action::Yielded { name, by } => {
                let message = by.map_or_else(
                    || "the rollout of the revision's successor ended".to_owned(),
                    |by| format!("{by} serves instead of this revision"),
                );
                self.enter_or_owe(&name, Transition::new(RevisionState::Superseded, "Replaced", message), end).await;
            }
            Action::Quarantine { name, failure: ServiceFailure { reason, why } } => {
                tracing::error!(revision = name, reason, why, "policy failed in service and is quarantined");
                let (quarantined, now) =
                    (Transition::new(RevisionState::Quarantined, reason, why), self.tools.clock.now());
                self.enter_or_owe(&name, quarantined, |status| end_rollout(&mut status.rollout, "returned", now)).await;
                self.count_return(&name, reason);
                self.wake_rollouts();
            }
            Action::QuarantineAgain { name, known_as } => self.quarantine_again(&name, &known_as).await,
            Action::Compile { name, is_vacant } => drop(self.compile(&name, is_vacant, found).await),
            Action::Restore { name, failed } => self.restore_one(&name, &failed, found).await?,
            Action::Delete(name) => {
                self.revisions.entries.remove(&name);
                self.records.delete(&name).await?;
            }
        }
        Ok(())
    }

    async fn quarantine_again(&mut self, name: &str, known_as: &str) {
        let status = self.records.status(known_as);
        let why = status.message.unwrap_or_default();
        let reason = if status.reason.as_deref() == Some(RETURNED) { RETURNED } else { FAILED };
        let message = format!("the same package failed before, as {known_as}: {why}");
        let describe = |now: &mut PolicyRevisionStatus| {
            (now.policy, now.version, now.kinds) = (status.policy, status.version, status.kinds);
            (now.predecessor, now.answers_digest) = (status.predecessor, status.answers_digest);
        };
        let again = Transition::new(RevisionState::Quarantined, reason, message);
        self.enter_or_owe(name, again, describe).await;
        self.waiting.remove(name);
    }

    /// Starts to compile a revision in the background, so that it can serve again. Returns whether the revision can be
    /// loaded at once. The end of the compilation starts a new round.
    pub(super) async fn compile(&mut self, name: &str, is_vacant: bool, found: &[Found]) -> bool {
        let Some(revision) = self.records.get(name).cloned() else { return false };
        let is_compiled = self.is_compiled(name, &revision, found).await;
        if !is_compiled {
            if is_vacant {
                self.hold_open(&revision, found);
            }
            self.restoring.insert(name.to_owned(), is_vacant);
        }
        is_compiled
    }

    /// Loads a revision so that it serves again, in place of a quarantined revision. If the operator cannot load the
    /// revision any more, it records the reason in the PolicyRevision. The next plan then chooses another revision.
    async fn restore_one(&mut self, name: &str, failed: &str, found: &[Found]) -> Result<(), StepError> {
        let Some(revision) = self.records.get(name).cloned() else { return Ok(()) };
        let was_open = self.is_held_open(name);
        match self.reload(&revision, found).await? {
            LoadResult::Serves => {
                if was_open {
                    // Swap again, because other policies answer now, although the same revisions serve.
                    self.swap_again();
                    self.wake_settings(&revision.spec.source.namespace);
                }
                let claimed = self.claim_of(failed, name, found);
                if let Some(entry) = self.revisions.entries.get_mut(name) {
                    entry.stage = None;
                }
                let is_returned = self.records.status(failed).reason.as_deref() == Some(RETURNED);
                let what = if is_returned { "returned its objects" } else { "failed in service" };
                let message = format!("{failed} {what}");
                let restored = Transition::new(RevisionState::Active, "Restored", message);
                self.enter_or_owe(name, restored, |status| status.claimed = claimed).await;
                // If the package contains the restored revision again, the revision needs no further check.
                self.checking.remove(name);
                self.waiting.remove(name);
                self.due.remove(name);
            }
            LoadResult::Never | LoadResult::Withheld => {
                if self.is_held_open(name) {
                    self.revisions.entries.remove(name);
                }
            }
            LoadResult::NotYet(error) => {
                self.due.insert(name.to_owned(), Instant::now() + LOOK_AGAIN);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Gives a restored predecessor the claim of the failed revision, because the predecessor serves in the failed
    /// revision's place. The predecessor gets the claim even if the two revisions have different sources. Returns the
    /// time of the claim, in the format of the status of a PolicyRevision.
    fn claim_of(&mut self, failed: &str, restored: &str, found: &[Found]) -> Option<String> {
        let age = age_of(self.records.get(failed)?, found);
        let (mut serving, waiting) = (self.facts().serving(), self.waiting_for_a_place());
        serving.insert(restored.to_owned());
        let earlier = age.claimed;
        self.revisions.entries.get_mut(restored)?.age = age;
        self.revisions.claim(restored, earlier, &serving, &waiting, self.tools.clock.now());
        self.revisions.claimed(&[restored.to_owned()]).map(|claimed| claimed.to_string())
    }
}

/// Removes the fields that matter only while a revision serves or waits, such as the approval and the details of the
/// effect.
pub(super) fn end(status: &mut PolicyRevisionStatus) {
    (status.approved, status.limits_digest, status.returned_from, status.rollout) = (None, None, None, None);
    if let Some(preview) = &mut status.preview {
        (preview.paths, preview.problems) = (Vec::new(), Vec::new());
    }
}

#[cfg(test)]
mod tests {
    use kaos_crds::{PolicyApproval, PolicyPreview, PreviewPath};

    use super::*;

    #[test]
    fn an_approval_ends_with_the_service_of_the_revision() {
        let preview =
            PolicyPreview { summary: "s".to_owned(), paths: vec![PreviewPath::default()], ..PolicyPreview::default() };
        let mut status = PolicyRevisionStatus {
            approved: Some(PolicyApproval::default()),
            limits_digest: Some("sha256:1".to_owned()),
            preview: Some(preview),
            ..PolicyRevisionStatus::default()
        };
        end(&mut status);
        assert_eq!((&status.approved, &status.limits_digest), (&None, &None));
        let preview = status.preview.unwrap();
        assert_eq!((preview.summary.as_str(), preview.paths.len()), ("s", 0));
    }
}
