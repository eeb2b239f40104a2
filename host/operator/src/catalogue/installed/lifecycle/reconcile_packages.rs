//! Takes the next step with each package: finds, checks, admits it, or tries it again.

use std::time::Duration;

use kaos_crds::{PolicyRevisionStatus, RevisionState};
use tokio::time::Instant;

use super::{ATTEMPTS, Found, LOOK_AGAIN, Lifecycle, PATIENCE, StepError, Transition};
use crate::catalogue::installed::background::Stand;

impl Lifecycle {
    /// Takes the next step with each package whose turn it is, and swaps in the result. Returns when to look again, and
    /// the error of a failed step.
    pub(super) async fn advance_all(
        &mut self,
        found: &[Found],
        is_fresh: bool,
    ) -> Result<(Option<Duration>, Result<(), StepError>), StepError> {
        let (mut wait, mut advanced) = (self.sources.again(), Ok(()));
        let sources: Vec<_> = found.iter().map(|found| &found.source).collect();
        for package in self.fairness.begin(&sources).into_iter().map(|at| &found[at]) {
            let mut step = self.advance(package).await;
            while is_fresh && self.until_checked(package).await {
                step = self.advance(package).await;
            }
            match step {
                Ok(false) => {}
                Ok(true) => {
                    let due = self.name_of(package).and_then(|name| self.due.get(&name));
                    let due = due.map_or(LOOK_AGAIN, |due| due.saturating_duration_since(Instant::now()));
                    wait = Some(wait.map_or(due, |wait: Duration| wait.min(due)));
                }
                // A failed package delays neither other packages nor the next ones of its namespace.
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
                self.serve().await?;
            }
            if self.fairness.is_taken() {
                // The others have their turn in the next round, after any change that came meanwhile.
                wait = Some(Duration::ZERO);
                break;
            }
        }
        if is_fresh {
            self.serve().await?;
        }
        Ok((wait, advanced))
    }

    /// Waits for a running check, trial or question of a package of the operator's own namespace. Otherwise passes would
    /// create children before the package serves, and change them afterwards. Returns whether it waited.
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

    /// Takes the next step with a package. Returns whether to look at it again when it is due, although nothing
    /// changes.
    async fn advance(&mut self, found: &Found) -> Result<bool, StepError> {
        // A package that was not read yet cannot be checked.
        let (Some(name), Some(held)) = (self.name_of(found), &found.held) else { return Ok(false) };
        if self.records.get(&name).is_none() {
            self.records.create(&name, self.spec_of(found, held)).await?;
        }
        let status = self.records.status(&name);
        let asked = self.asked(&name);
        let retried = self.is_asked_for(&name);
        if retried {
            self.tools.catalogue.ledger().absolve(&name);
        }
        match status.state {
            state if state.is_let_in() && self.revisions.entries.contains_key(&name) => {
                // There is nothing to try. Record the request, so that it does not clear later failures of the revision
                // too.
                if retried && self.revisions.entries.get(&name).is_some_and(|entry| entry.content.is_loaded()) {
                    self.records.write_or_owe(&name, PolicyRevisionStatus { retried: asked, ..status }).await;
                }
                Ok(false)
            }
            RevisionState::Refused | RevisionState::Quarantined if !retried && !self.is_overtaken(held, &status) => {
                Ok(false)
            }
            RevisionState::Pending | RevisionState::Superseded
                if asked.is_none() && self.put_aside_as(&name).is_some() =>
            {
                self.put_aside_again(&name).await;
                Ok(false)
            }
            _ if !retried && self.due.get(&name).is_some_and(|due| Instant::now() < *due) => Ok(true),
            RevisionState::Checking if !retried && !self.checking.contains(&name) => {
                self.unended(&name, status.attempts.unwrap_or(1)).await
            }
            _ => {
                if retried {
                    self.due.remove(&name);
                }
                self.admit(&name, found, held, asked).await
            }
        }
    }

    /// Handles a process that ended during the check of a package. The process may have been killed for any reason, so
    /// the package is tried again, with a growing delay. It is refused after several such ends.
    async fn unended(&mut self, name: &str, attempts: i64) -> Result<bool, StepError> {
        if attempts >= ATTEMPTS {
            let message = format!(
                "the operator ended {attempts} times while it checked this, so it is not tried again by itself: {}",
                self.remedy(name)
            );
            self.enter_or_owe(name, Transition::new(RevisionState::Refused, "EndedTheOperator", message), |_| {}).await;
            return Ok(false);
        }
        let wait = PATIENCE.0 * u32::try_from(attempts * 10).unwrap_or(1);
        let message = format!("the operator ended while it checked this ({attempts} of {ATTEMPTS}): it is tried again");
        self.due.insert(name.to_owned(), Instant::now() + wait);
        self.enter(name, Transition::new(RevisionState::Pending, "Interrupted", message), |_| {}).await?;
        Ok(true)
    }
}
