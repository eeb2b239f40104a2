//! A revision enters a state, which is written down and told; and what people ask of it there.

use kaos_crds::{PolicyRevisionStatus, RevisionState};
use kaos_policy::cut::{STATUS, cut};

use super::{Lifecycle, StepError};
use crate::{
    catalogue::installed::records::{RETRY, retry_command},
    moments::written,
};

/// A state to enter, and why.
pub(super) struct Turn {
    pub(super) to: RevisionState,
    pub(super) reason: &'static str,
    pub(super) message: String,
}

impl Turn {
    pub(super) fn new(to: RevisionState, reason: &'static str, message: impl Into<String>) -> Self {
        Self { to, reason, message: message.into() }
    }
}

impl Lifecycle {
    /// Writes a state down, and tells it. Says whether there is still a record to write it into.
    pub(super) async fn enter(
        &mut self,
        name: &str,
        Turn { to: state, reason, message }: Turn,
        change: impl FnOnce(&mut PolicyRevisionStatus),
    ) -> Result<bool, StepError> {
        let before = self.records.status(name);
        let mut status = before.clone();
        status.state = state;
        status.reason = Some(reason.to_owned());
        // A policy says why it failed, and a status that is too large would be refused: then nothing could put it aside.
        status.message = Some(cut(&message, STATUS).into_owned()).filter(|message| !message.is_empty());
        if before.state != state || before.since.is_none() {
            status.since = Some(written(self.tools.clock.now()));
        }
        if !matches!(state, RevisionState::Checking | RevisionState::Pending) {
            status.attempts = None;
        }
        if !matches!(state, RevisionState::Active) {
            (status.objects, status.outstanding) = (None, None);
        }
        change(&mut status);
        let news = (before.state, &before.reason) != (status.state, &status.reason);
        if !self.records.write(name, status).await? {
            return Ok(false);
        }
        if news
            && !matches!(state, RevisionState::Checking | RevisionState::Pending)
            && let Some(revision) = self.records.get(name).cloned()
        {
            tracing::info!(revision = name, state = state.name(), reason, "policy revision");
            self.news.tell(&revision).await;
        }
        Ok(true)
    }

    /// What a person asks with the annotation, if anything.
    pub(super) fn asked(&self, name: &str) -> Option<String> {
        self.records.get(name)?.metadata.annotations.as_ref()?.get(RETRY).cloned()
    }

    /// How a person asks for another try.
    pub(super) fn remedy(&self, name: &str) -> String {
        retry_command(name, &self.tools.duties.operator_namespace, self.asked(name).as_deref())
    }

    /// Whether a person asks for something that was not tried yet.
    pub(super) fn is_asked_for(&self, name: &str) -> bool {
        let asked = self.asked(name);
        asked.is_some() && asked != self.records.status(name).retried
    }
}
