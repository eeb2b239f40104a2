//! The rollout of a revision that is not loaded. No object moves, and the predecessor answers for the moved objects too.
//! Persons can still pause the rollout, and return all objects.

use kaos_crds::{PolicyRevisionStatus, PolicyRollout, PolicyRolloutPause, RevisionState};

use super::{
    RETURNED, ROLLING_OUT,
    decide::ReturnCause,
    requests::{RolloutRequest, Verb, request},
    told,
};
use crate::{
    catalogue::installed::{
        lifecycle::{
            Lifecycle, Transition,
            plan::{Action, ServiceFailure},
        },
        observed::{NOT_LOADED, PAUSED_BY_PERSON, ROLLOUT_PAUSED},
    },
    timestamps::written,
};

impl Lifecycle {
    /// Handles the request of a person, and tells in the rollout that the revision is not loaded. Returns why the
    /// rollout returns.
    pub(super) async fn step_unloaded(&mut self, name: &str) -> Option<ServiceFailure> {
        let revision = self.records.get(name)?;
        let status = revision.status.clone()?;
        let mut rollout = status.rollout.clone()?;
        // A revision that the operator still loads after its start is not lost.
        let is_lost = status.reason.as_deref() == Some(NOT_LOADED)
            || self.revisions.entries.get(name).is_some_and(|entry| entry.content.is_lost());
        let request = request(revision, &rollout);
        rollout.requests += i64::from(request.is_some());
        let pause = |reason: &str, message: String, by: Option<String>| PolicyRolloutPause {
            reason: reason.to_owned(),
            message,
            by,
            since: Some(written(self.tools.clock.now())),
        };
        match request {
            Some(RolloutRequest { verb: Verb::Return, by }) if !self.facts().lacks_predecessor(name) => {
                let why = told::returned(&rollout, &format!("{by} returned to the revision that served before"));
                self.rollouts.entry(name.to_owned()).or_default().cause = Some(ReturnCause::Person);
                return Some(ServiceFailure { reason: RETURNED, why });
            }
            Some(RolloutRequest { verb: Verb::Pause, by }) => {
                let message = format!("{by} paused the rollout");
                rollout.paused = Some(pause(PAUSED_BY_PERSON, message, Some(by)));
            }
            Some(RolloutRequest { verb: Verb::Resume, .. }) => rollout.paused = None,
            // The revision cannot serve any object now.
            Some(RolloutRequest { verb: Verb::Promote | Verb::Return, .. }) | None => {}
        }
        if is_lost && rollout.paused.as_ref().is_none_or(|paused| paused.by.is_none() && paused.reason != NOT_LOADED) {
            let message = "the operator cannot load the revision, so the rollout waits: run `policy return`, or correct \
                           the package";
            rollout.paused = Some(pause(NOT_LOADED, message.to_owned(), None));
        }
        rollout.summary = told::summary(&rollout);
        if status.rollout.as_ref() == Some(&rollout) {
            return None;
        }
        // The reason and the message of the status say why the revision is not loaded.
        self.records.write_or_owe(name, PolicyRevisionStatus { rollout: Some(rollout), ..status }).await;
        None
    }

    /// Records that the predecessor of a rollout serves again after it could not be loaded.
    pub(super) async fn yields_again(&mut self, before: &str, by: &str) {
        if self.records.status(before).reason.as_deref() != Some(NOT_LOADED) {
            return;
        }
        let yields = Action::Yield { name: before.to_owned(), by: by.to_owned() };
        if let Err(error) = self.execute(yields, &[]).await {
            tracing::warn!(%error, revision = before, "could not record that a revision serves again");
        }
    }
}

/// Returns the state of an active revision that is loaded again, and its rollout.
pub(in super::super) fn serves_again(status: &PolicyRevisionStatus) -> (Transition, Option<PolicyRollout>) {
    let Some(mut rollout) = status.open_rollout().cloned() else {
        return (Transition::new(RevisionState::Active, "Active", ""), status.rollout.clone());
    };
    rollout.paused = rollout.paused.filter(|paused| paused.reason != NOT_LOADED);
    rollout.summary = told::summary(&rollout);
    let reason = if rollout.paused.is_some() { ROLLOUT_PAUSED } else { ROLLING_OUT };
    let message = told::message(&rollout, status.approved.as_ref(), None);
    (Transition::new(RevisionState::Active, reason, message), Some(rollout))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_that_is_loaded_again_goes_on_with_its_rollout() {
        let paused = |reason: &str| PolicyRollout {
            paused: Some(PolicyRolloutPause { reason: reason.to_owned(), ..PolicyRolloutPause::default() }),
            ..PolicyRollout::default()
        };
        let again = |rollout: Option<PolicyRollout>| {
            let status =
                PolicyRevisionStatus { state: RevisionState::Active, rollout, ..PolicyRevisionStatus::default() };
            let (transition, rollout) = serves_again(&status);
            (transition.reason, rollout.and_then(|rollout| rollout.paused).map(|paused| paused.reason))
        };
        assert_eq!(again(None), ("Active", None));
        assert_eq!(again(Some(paused(NOT_LOADED))), (ROLLING_OUT, None));
        let by_person = Some(PAUSED_BY_PERSON.to_owned());
        assert_eq!(again(Some(paused(PAUSED_BY_PERSON))), (ROLLOUT_PAUSED, by_person));
        let ended = PolicyRollout { ended: Some("t".to_owned()), ..PolicyRollout::default() };
        assert_eq!(again(Some(ended)), ("Active", None));
    }
}
