//! Takes the next step with each package: checks it, admits it, or tries it again.

use std::time::Duration;

use kaos_crds::{PolicyRevisionStatus, RevisionState};
use tokio::time::Instant;

use super::{ATTEMPTS, BACKOFF, Found, LOOK_AGAIN, Lifecycle, StepError, Transition};
use crate::catalogue::{PLACE_TAKEN, installed::background::Stand};

/// The facts that decide the next step with a package.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "they are independent facts")]
struct PackageFacts {
    state: RevisionState,
    attempts: Option<i64>,
    /// Whether a user requested an attempt that the operator did not make yet.
    is_retried: bool,
    /// Whether the admitted revision is loaded. `None` if the revision is not admitted.
    is_loaded: Option<bool>,
    /// Whether a change of other packages can have removed the reason for refusing or holding this package.
    is_overtaken: bool,
    /// Whether the time of the next attempt has come.
    is_due: bool,
    /// Whether this process started the check or the preview of the package.
    is_checked_here: bool,
}

/// The next step with a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Nothing,
    /// Records that the operator has handled a request for another attempt. Otherwise the same request would cause
    /// another attempt after each later failure of the revision.
    Acknowledge,
    /// Waits until the next attempt is due.
    Wait,
    /// Handles a check or preview during which a previous process ended. The value is the number of attempts.
    Interrupted(i64),
    /// Checks the package and lets it serve.
    Admit,
}

impl PackageFacts {
    /// Returns the next step.
    fn next(self) -> Step {
        match (self.state, self.is_retried) {
            // The revision already serves, so there is nothing to try.
            (state, true) if state.is_let_in() && self.is_loaded == Some(true) => Step::Acknowledge,
            (state, _) if state.is_let_in() && self.is_loaded.is_some() => Step::Nothing,
            (RevisionState::Refused | RevisionState::Held | RevisionState::Quarantined, false)
                if !self.is_overtaken =>
            {
                Step::Nothing
            }
            (_, false) if !self.is_due => Step::Wait,
            (RevisionState::Checking | RevisionState::Previewing, false) if !self.is_checked_here => {
                Step::Interrupted(self.attempts.unwrap_or(1))
            }
            _ => Step::Admit,
        }
    }
}

impl Lifecycle {
    /// Takes the next step with each package that has its turn in this round. After each package, swaps in the changed
    /// set of serving revisions. On a fresh cluster, makes only one swap, after all packages. Returns the delay until
    /// the next step, and the error of a failed step.
    pub(super) async fn advance_all(
        &mut self,
        found: &[Found],
        is_fresh: bool,
    ) -> (Option<Duration>, Result<(), StepError>) {
        let (mut wait, mut advanced) = (self.sources.again(), Ok(()));
        let sources: Vec<_> = found.iter().map(|found| &found.source).collect();
        for package in self.fairness.begin(&sources).into_iter().map(|at| &found[at]) {
            let mut step = self.advance(package, found).await;
            while is_fresh && self.until_checked(package).await {
                step = self.advance(package, found).await;
            }
            match step {
                Ok(false) => {}
                Ok(true) => {
                    let due = self.name_of(package).and_then(|name| self.due.get(&name));
                    let due = due.map_or(LOOK_AGAIN, |due| due.saturating_duration_since(Instant::now()));
                    wait = Some(wait.map_or(due, |wait: Duration| wait.min(due)));
                }
                // After an error, continue: the failed step must delay neither other namespaces nor the next packages
                // of its own namespace.
                Err(error) => {
                    if self.fairness.is_taken()
                        && let Some(name) = self.name_of(package)
                    {
                        self.due.insert(name, Instant::now() + LOOK_AGAIN);
                    }
                    advanced = advanced.and(Err(error));
                }
            }
            if !is_fresh {
                advanced = advanced.and(self.serve().await);
            }
            if self.fairness.is_taken() {
                // Handle the other packages in the next round, which first reads all new changes.
                wait = Some(Duration::ZERO);
                break;
            }
        }
        if is_fresh {
            advanced = advanced.and(self.serve().await);
        }
        (wait, advanced)
    }

    /// For a package of the operator's own namespace, waits until no check, no trial of settings and no question about
    /// rights runs for this package. Without this wait, passes would create children before the package serves, and
    /// change these children afterwards. Returns whether a wait was necessary.
    async fn until_checked(&mut self, found: &Found) -> bool {
        let is_own = found.source.namespace == self.tools.duties.operator_namespace;
        let Some(name) = self.name_of(found).filter(|_| is_own) else { return false };
        let mut waited = false;
        while matches!(self.checks.stand(&name), Stand::UnderWay) {
            self.checks.changed().await;
            waited = true;
        }
        while matches!(self.trials.stand(&name), Stand::UnderWay) {
            self.trials.changed().await;
            waited = true;
        }
        while matches!(self.questions.stand(&name), Stand::UnderWay) {
            self.questions.changed().await;
            waited = true;
        }
        waited
    }

    /// Takes the next step with a package. Returns whether to try the package again when it is due, even if nothing
    /// changes.
    async fn advance(&mut self, found: &Found, all: &[Found]) -> Result<bool, StepError> {
        // Do nothing if the operator did not read the package yet, or if the package still needs a PolicyRevision.
        let (Some(name), Some(held)) = (self.name_of(found), &found.held) else { return Ok(false) };
        if self.defaults.is_of_process(&found.source) {
            return Ok(false);
        }
        if self.records.get(&name).is_none() {
            return Ok(false);
        }
        self.leave_conflict(&name).await;
        let (status, asked) = (self.records.status(&name), self.asked(&name));
        let is_overtaken = self.is_overtaken(&name, held, &status, all);
        let entry = self.revisions.entries.get(&name);
        let is_retried = self.is_asked_for(&name);
        let facts = PackageFacts {
            state: status.state,
            attempts: status.attempts,
            is_retried,
            is_loaded: entry.map(|entry| entry.content.is_loaded()),
            is_overtaken,
            is_due: self.due.get(&name).is_none_or(|due| Instant::now() >= *due)
                || self.has_awaited(held, &status, found, all),
            is_checked_here: self.checking.contains(&name),
        };
        if is_retried {
            self.tools.catalogue.ledger().absolve(&name);
        }
        match facts.next() {
            Step::Nothing => Ok(false),
            Step::Acknowledge => {
                self.records.write_or_owe(&name, PolicyRevisionStatus { retried: asked, ..status }).await;
                Ok(false)
            }
            Step::Wait => Ok(true),
            Step::Interrupted(attempts) => self.interrupted(&name, attempts).await,
            Step::Admit => {
                if is_retried {
                    self.due.remove(&name);
                }
                Box::pin(self.admit(&name, found, held, asked, all)).await
            }
        }
    }

    /// If a revision waits for a place, and must not serve before its effect is known, ends this wait and holds the
    /// revision. Such a revision was admitted before the limits existed, or lost its place. When the place is free, the
    /// operator computes the effect.
    async fn leave_conflict(&mut self, name: &str) {
        let status = self.records.status(name);
        let is_limited = self.revisions.entries.get(name).is_some_and(|entry| self.is_gated(name, entry));
        if status.state != RevisionState::Conflict || !is_limited {
            return;
        }
        self.revisions.entries.remove(name);
        let message = status.message.unwrap_or_default();
        self.enter_or_owe(name, Transition::new(RevisionState::Pending, PLACE_TAKEN, message), |_| {}).await;
    }

    /// Handles a check or preview during which a previous process ended. The package need not be the cause, so the
    /// operator checks it again, with a growing delay. After several interruptions, the operator refuses the package.
    async fn interrupted(&mut self, name: &str, attempts: i64) -> Result<bool, StepError> {
        if attempts >= ATTEMPTS {
            let message = format!(
                "the operator ended {attempts} times while it checked the package or computed its effect, and tries the \
                 package again only on request: {}",
                self.remedy(name)
            );
            self.enter_or_owe(name, Transition::new(RevisionState::Refused, "EndedTheOperator", message), |_| {}).await;
            return Ok(false);
        }
        let wait = BACKOFF.first * u32::try_from(attempts * 10).unwrap_or(1);
        let message = format!(
            "the operator ended while it checked the package or computed its effect ({attempts} of {ATTEMPTS}), and \
             tries the package again"
        );
        self.due.insert(name.to_owned(), Instant::now() + wait);
        self.enter(name, Transition::new(RevisionState::Pending, "Interrupted", message), |_| {}).await?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_step_depends_on_the_state_and_on_requests_of_users() {
        let new = PackageFacts {
            state: RevisionState::Pending,
            attempts: None,
            is_retried: false,
            is_loaded: None,
            is_overtaken: false,
            is_due: true,
            is_checked_here: false,
        };
        let asked = PackageFacts { is_retried: true, ..new };
        let active = PackageFacts { state: RevisionState::Active, is_loaded: Some(true), ..new };
        let refused = PackageFacts { state: RevisionState::Refused, ..new };
        let held = PackageFacts { state: RevisionState::Held, ..new };
        let checking = PackageFacts { state: RevisionState::Checking, attempts: Some(2), ..new };
        for (observed, step) in [
            (new, Step::Admit),
            (PackageFacts { is_due: false, ..new }, Step::Wait),
            (PackageFacts { is_due: false, ..asked }, Step::Admit),
            (active, Step::Nothing),
            (PackageFacts { is_retried: true, ..active }, Step::Acknowledge),
            (PackageFacts { is_retried: true, is_loaded: Some(false), ..active }, Step::Nothing),
            (PackageFacts { is_loaded: None, ..active }, Step::Admit),
            (PackageFacts { state: RevisionState::Conflict, ..active }, Step::Nothing),
            (refused, Step::Nothing),
            (PackageFacts { is_overtaken: true, ..refused }, Step::Admit),
            (PackageFacts { is_retried: true, ..refused }, Step::Admit),
            (held, Step::Nothing),
            (PackageFacts { is_overtaken: true, ..held }, Step::Admit),
            (PackageFacts { is_retried: true, ..held }, Step::Admit),
            (PackageFacts { state: RevisionState::Previewing, attempts: Some(1), ..new }, Step::Interrupted(1)),
            (PackageFacts { state: RevisionState::Previewing, is_checked_here: true, ..new }, Step::Admit),
            (PackageFacts { state: RevisionState::Quarantined, ..new }, Step::Nothing),
            (PackageFacts { state: RevisionState::Superseded, ..new }, Step::Admit),
            (PackageFacts { state: RevisionState::NotPermitted, is_due: false, ..new }, Step::Wait),
            (checking, Step::Interrupted(2)),
            (PackageFacts { is_checked_here: true, ..checking }, Step::Admit),
            (PackageFacts { is_retried: true, ..checking }, Step::Admit),
        ] {
            assert_eq!(observed.next(), step, "{observed:?}");
        }
    }
}
