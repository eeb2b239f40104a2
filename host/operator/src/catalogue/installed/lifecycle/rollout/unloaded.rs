//! Handles the rollout of a revision that is not loaded. Until the revision is loaded, no further object moves, and the
//! predecessor answers for the moved objects too. Persons can still pause the rollout, and return all objects.

use jiff::Timestamp;
use kaos_crds::{PolicyRevisionStatus, PolicyRollout, PolicyRolloutPause, RevisionState};

use super::{
    RETURNED, ROLLING_OUT,
    decide::ReturnCause,
    parts::move_again,
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

/// Why a rollout waits while its revision is not loaded.
const LOST: &str = "the operator cannot load the revision, so the rollout waits: run `policy return`, or correct the \
                    package";
const BOTH_LOST: &str = "the operator can load neither the revision nor the revision that served before, so all objects \
                         of the rollout wait and keep their children: install one of the two packages again";

/// The facts about a revision that is not loaded.
#[derive(Debug, Clone, Copy)]
struct UnloadedFacts {
    /// Whether the revision is lost. If the revision is not lost, the operator is still loading the revision.
    is_lost: bool,
    /// Whether the predecessor is not loaded either.
    lacks_predecessor: bool,
    now: Timestamp,
}

/// The next step of a rollout whose revision is not loaded.
#[derive(Debug, PartialEq, Eq)]
enum UnloadedStep {
    /// The rollout stays open, with these contents.
    Stays(Box<PolicyRollout>),
    /// All objects return, as this person requested.
    Return { by: String },
}

impl UnloadedFacts {
    /// Handles the request of a person. If the revision is lost, the pause says why the rollout waits.
    fn next(self, mut rollout: PolicyRollout, request: Option<RolloutRequest>) -> UnloadedStep {
        let since = || Some(written(self.now));
        rollout.requests += i64::from(request.is_some());
        let refused = match request {
            Some(RolloutRequest { verb: Verb::Return, by }) if !self.lacks_predecessor => {
                return UnloadedStep::Return { by };
            }
            // Keep this request for later: the operator handles it when it has loaded the revision, or knows that the
            // revision is lost.
            Some(RolloutRequest { verb: Verb::Promote | Verb::Return, .. }) if !self.is_lost => {
                rollout.requests -= 1;
                None
            }
            Some(RolloutRequest { verb: verb @ (Verb::Promote | Verb::Return), by }) => {
                Some(format!("the operator could not run `policy {}`, which {by} requested", verb.name()))
            }
            Some(RolloutRequest { verb: Verb::Pause, by }) => {
                let (reason, message) = (PAUSED_BY_PERSON.to_owned(), format!("{by} paused the rollout"));
                rollout.paused = Some(PolicyRolloutPause { reason, message, by: Some(by), since: since() });
                None
            }
            Some(RolloutRequest { verb: Verb::Resume, .. }) => {
                rollout.paused = None;
                None
            }
            None => None,
        };
        if self.is_lost {
            self.tell(&mut rollout, refused.as_deref());
        }
        rollout.summary = told::summary(&rollout);
        UnloadedStep::Stays(Box::new(rollout))
    }

    /// Writes into the pause why the rollout waits, and which request the operator refused.
    ///
    /// If a person paused the rollout, it stays paused by this person.
    fn tell(self, rollout: &mut PolicyRollout, refused: Option<&str>) {
        let why = if self.lacks_predecessor { BOTH_LOST } else { LOST };
        let message = refused.map_or_else(|| why.to_owned(), |refused| format!("{refused}: {why}"));
        let before = rollout.paused.take().unwrap_or_default();
        let is_told = before.reason == NOT_LOADED && refused.is_none() && before.message.ends_with(why);
        rollout.paused = Some(match &before.by {
            Some(by) if refused.is_some() => {
                PolicyRolloutPause { message: format!("{by} paused the rollout; {message}"), ..before }
            }
            Some(_) => before,
            None if is_told => before,
            None => {
                let since = before.since.filter(|_| before.reason == NOT_LOADED);
                let since = since.or_else(|| Some(written(self.now)));
                PolicyRolloutPause { reason: NOT_LOADED.to_owned(), message, by: None, since }
            }
        });
    }
}

impl Lifecycle {
    /// Handles the request of a person, and records in the rollout that the revision is not loaded. If all objects
    /// return, returns the reason.
    pub(super) async fn step_unloaded(&mut self, name: &str) -> Option<ServiceFailure> {
        let revision = self.records.get(name)?;
        let status = revision.status.clone()?;
        let rollout = status.rollout.clone()?;
        let facts = UnloadedFacts {
            is_lost: status.reason.as_deref() == Some(NOT_LOADED)
                || self.revisions.entries.get(name).is_some_and(|entry| entry.content.is_lost()),
            lacks_predecessor: self.facts().lacks_predecessor(name),
            now: self.tools.clock.now(),
        };
        let request = request(revision, &rollout);
        // Forget the earlier looks: other policies answer for the moved objects now, so these objects show nothing
        // about the revision.
        self.rollouts.entry(name.to_owned()).or_default().forget();
        match facts.next(rollout.clone(), request) {
            UnloadedStep::Return { by } => {
                let why = told::returned(&rollout, &format!("{by} returned to the revision that served before"));
                self.rollouts.entry(name.to_owned()).or_default().cause = Some(ReturnCause::Person);
                Some(ServiceFailure { reason: RETURNED, why })
            }
            UnloadedStep::Stays(next) if *next == rollout => None,
            UnloadedStep::Stays(next) => {
                // The reason and the message of the status say why the revision is not loaded.
                self.records.write_or_owe(name, PolicyRevisionStatus { rollout: Some(*next), ..status }).await;
                None
            }
        }
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
pub(in super::super) fn serves_again(
    status: &PolicyRevisionStatus,
    now: Timestamp,
) -> (Transition, Option<PolicyRollout>) {
    let Some(mut rollout) = status.open_rollout().cloned() else {
        return (Transition::new(RevisionState::Active, "Active", ""), status.rollout.clone());
    };
    rollout.paused = rollout.paused.filter(|paused| paused.reason != NOT_LOADED);
    move_again(&mut rollout, now);
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
            let (transition, rollout) = serves_again(&status, Timestamp::UNIX_EPOCH);
            (transition.reason, rollout.and_then(|rollout| rollout.paused).map(|paused| paused.reason))
        };
        assert_eq!(again(None), ("Active", None));
        assert_eq!(again(Some(paused(NOT_LOADED))), (ROLLING_OUT, None));
        let by_person = Some(PAUSED_BY_PERSON.to_owned());
        assert_eq!(again(Some(paused(PAUSED_BY_PERSON))), (ROLLOUT_PAUSED, by_person));
        let ended = PolicyRollout { ended: Some("t".to_owned()), ..PolicyRollout::default() };
        assert_eq!(again(Some(ended)), ("Active", None));
    }

    #[test]
    fn the_operator_keeps_or_refuses_requests_about_a_revision_that_is_not_loaded() {
        let facts = UnloadedFacts { is_lost: true, lacks_predecessor: false, now: Timestamp::UNIX_EPOCH };
        let loads = UnloadedFacts { is_lost: false, ..facts };
        let neither = UnloadedFacts { lacks_predecessor: true, ..facts };
        let asked = |verb| Some(RolloutRequest { verb, by: "alice".to_owned() });
        let stays = |facts: UnloadedFacts, rollout: &PolicyRollout, request| match facts.next(rollout.clone(), request)
        {
            UnloadedStep::Stays(rollout) => *rollout,
            UnloadedStep::Return { by } => panic!("{by} returned the objects"),
        };
        let told = |rollout: &PolicyRollout| rollout.paused.clone().unwrap_or_default();
        let new = PolicyRollout::default();
        assert_eq!(stays(loads, &new, asked(Verb::Promote)).requests, 0, "the operator keeps the request");
        let by = "alice".to_owned();
        assert_eq!(facts.next(new.clone(), asked(Verb::Return)), UnloadedStep::Return { by });
        let lost = stays(facts, &new, None);
        assert_eq!((told(&lost).reason.as_str(), told(&lost).message.as_str()), (NOT_LOADED, LOST));
        assert_eq!(stays(facts, &lost, None), lost, "the same pause is not written again");
        for (facts, verb, why) in [(facts, Verb::Promote, LOST), (neither, Verb::Return, BOTH_LOST)] {
            let refused = stays(facts, &lost, asked(verb));
            assert_eq!(refused.requests, 1);
            let message = told(&refused).message;
            let began = "the operator could not run `policy ";
            assert!(message.starts_with(began) && message.ends_with(why), "{message}");
            assert_eq!(stays(facts, &refused, None), refused, "the answer stays");
        }
        assert_eq!(told(&stays(neither, &lost, None)).message, BOTH_LOST);
        let paused = stays(facts, &lost, asked(Verb::Pause));
        assert_eq!(stays(facts, &paused, None), paused, "a pause by a person stays");
        let refused = told(&stays(facts, &paused, asked(Verb::Promote)));
        assert_eq!(refused.reason, PAUSED_BY_PERSON);
        assert!(refused.message.contains("`policy promote`, which alice requested"), "{}", refused.message);
        assert_eq!(told(&stays(facts, &paused, asked(Verb::Resume))).reason, NOT_LOADED);
    }
}
