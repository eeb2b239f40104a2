//! Records the state that a revision enters, and writes an Event. Also reads the retry annotation.

use jiff::SignedDuration;
use kaos_crds::{PolicyRevisionStatus, RevisionState};
use kaos_policy::cut::{STATUS, cut};

use super::{Lifecycle, StepError, transition::Transition};
use crate::{
    catalogue::installed::records::{APPROVED_FOR, RETRY, retry_command},
    timestamps::written,
};

impl Lifecycle {
    /// Writes a new state into the PolicyRevision, and then an Event. If the write of the PolicyRevision fails, the
    /// revision keeps its old state. Returns whether the PolicyRevision still exists.
    pub(super) async fn enter(
        &mut self,
        name: &str,
        transition: Transition,
        change: impl FnOnce(&mut PolicyRevisionStatus),
    ) -> Result<bool, StepError> {
        let (status, is_news) = self.turned(name, transition, change);
        if !self.records.write(name, status).await? {
            return Ok(false);
        }
        self.tell(name, is_news).await;
        Ok(true)
    }

    /// Lets a revision enter a state that follows from the states of other revisions. The new state is in effect even
    /// if the write fails, because a later process computes the state again. Returns whether the PolicyRevision still
    /// exists.
    pub(super) async fn enter_or_owe(
        &mut self,
        name: &str,
        transition: Transition,
        change: impl FnOnce(&mut PolicyRevisionStatus),
    ) -> bool {
        let (status, is_news) = self.turned(name, transition, change);
        let is_there = self.records.write_or_owe(name, status).await;
        if is_there {
            self.tell(name, is_news).await;
        }
        is_there
    }

    /// Returns the status of a revision in its new state, and whether to write an Event.
    fn turned(
        &self,
        name: &str,
        Transition { to: state, reason, message }: Transition,
        change: impl FnOnce(&mut PolicyRevisionStatus),
    ) -> (PolicyRevisionStatus, bool) {
        let before = self.records.status(name);
        let mut status = before.clone();
        status.state = state;
        status.reason = Some(reason.to_owned());
        // Cut the message, because it may come from a policy and be too long. The API server would refuse a status that
        // is too large, and then the operator could not quarantine the policy.
        status.message = Some(cut(&message, STATUS).into_owned()).filter(|message| !message.is_empty());
        if before.state != state || before.since.is_none() {
            status.since = Some(self.start_of(name, state));
        }
        if !matches!(state, RevisionState::Checking | RevisionState::Previewing | RevisionState::Pending) {
            status.attempts = None;
        }
        if !matches!(state, RevisionState::Active | RevisionState::Yielding) {
            (status.objects, status.outstanding) = (None, None);
        }
        change(&mut status);
        if ends_service(status.state) {
            // Remove the approval: otherwise the revision could serve again later, with an effect that no person
            // approved.
            status.approved = None;
        }
        let differs = (before.state, &before.reason) != (status.state, &status.reason);
        let is_passing = matches!(state, RevisionState::Checking | RevisionState::Pending | RevisionState::Previewing);
        let is_news = differs && !is_passing;
        (status, is_news)
    }

    /// Returns the time at which a revision enters a state. Two holds of a revision have different times, even within
    /// one second: otherwise the approval of the first hold would also count for the second.
    fn start_of(&self, name: &str, state: RevisionState) -> String {
        let annotations = self.records.get(name).and_then(|revision| revision.metadata.annotations.as_ref());
        let approved = annotations.and_then(|all| all.get(APPROVED_FOR)).filter(|_| state == RevisionState::Held);
        let now = self.tools.clock.now();
        match approved {
            Some(approved) if *approved == written(now) => written(now + SignedDuration::from_secs(1)),
            _ => written(now),
        }
    }

    async fn tell(&self, name: &str, is_news: bool) {
        if let Some(revision) = self.records.get(name).filter(|_| is_news) {
            let status = revision.status.clone().unwrap_or_default();
            let reason = status.reason.unwrap_or_default();
            tracing::info!(revision = name, state = status.state.name(), reason, "policy revision");
            self.events.tell(revision).await;
        }
    }

    /// Returns the value of the retry annotation of the PolicyRevision `name`, or `None` if the PolicyRevision does not
    /// have the annotation.
    pub(super) fn asked(&self, name: &str) -> Option<String> {
        self.records.get(name)?.metadata.annotations.as_ref()?.get(RETRY).cloned()
    }

    /// Returns the command with which a user requests another attempt.
    pub(super) fn remedy(&self, name: &str) -> String {
        retry_command(name, &self.tools.duties.operator_namespace, self.asked(name).as_deref())
    }

    /// Returns whether a user requested an attempt that the operator did not make yet.
    pub(super) fn is_asked_for(&self, name: &str) -> bool {
        let asked = self.asked(name);
        asked.is_some() && asked != self.records.status(name).retried
    }
}

/// Returns whether a revision in this state was admitted and does not serve. In all other states, the revision serves,
/// or was never admitted.
fn ends_service(state: RevisionState) -> bool {
    matches!(state, RevisionState::Superseded | RevisionState::Conflict | RevisionState::Quarantined)
}
