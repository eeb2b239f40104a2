//! How a pass ended, and when its object is looked at again.

use std::time::Duration;

use kaos_policy::contract::{Outcome, Reference, Refusal};
use tokio::time::Instant;

use super::{
    error::{CallError, Class},
    reach::Reached,
};
use crate::metrics::PassResult;

/// When something that cannot be watched is looked at again.
pub(super) const LOOK_AGAIN: Duration = Duration::from_mins(1);

/// When an object is looked at again, if nothing happens before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Never: it is gone, or the watch will say.
    Never,
    /// After a while.
    After(Duration),
    /// After a wait that grows from failure to failure, at least this one.
    Retry(Option<Duration>),
    /// After a wait that grows from failure to failure, and as soon as rights come back.
    Denied,
}

/// How a pass ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) result: PassResult,
    pub(crate) next: Next,
}

impl Ended {
    /// With a call that failed. `resync` is how long until an object is looked at again although nothing happened.
    pub(super) fn by(error: &CallError, resync: Duration) -> Self {
        let (result, next) = match error.class {
            Class::Permanent => (PassResult::Failed, Next::After(resync)),
            Class::Transient(wait) => (PassResult::Retried, Next::Retry(wait)),
            Class::Gone => (PassResult::Retried, Next::Retry(None)),
            Class::Forbidden => (PassResult::Retried, Next::Denied),
        };
        Self { result, next }
    }

    /// As far as a pass came. `follows` says whether the watch tells when a name is free that somebody else has.
    pub(super) fn at(reached: &Reached, resync: Duration, now: Instant, follows: impl Fn(&Reference) -> bool) -> Self {
        let Reached { outcome, applied, again, .. } = reached;
        if let Some(error) = applied.passing_error() {
            return Self::by(error, resync);
        }
        let soon = Next::After(again.unwrap_or(resync));
        let later = Next::After(applied.tried_again.map_or(resync, |at| at.saturating_duration_since(now)));
        let (result, next) = match outcome {
            Outcome::Applied => (PassResult::Settled, soon),
            Outcome::Gated | Outcome::Refused(Refusal::Waiting(_)) => (PassResult::Waiting, soon),
            Outcome::Refused(_) => (PassResult::Refused, Next::After(resync)),
            Outcome::Failed(_) if applied.waits => (PassResult::Waiting, Next::Retry(None)),
            Outcome::Failed(_) if !applied.conflicts.is_empty() => {
                let followed = applied.conflicts.iter().all(follows);
                (PassResult::Waiting, if followed { later } else { Next::After(LOOK_AGAIN) })
            }
            Outcome::Failed(_) => (PassResult::Failed, later),
        };
        Self { result, next }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{reconcile::apply::Applied, status::Hindrance};

    const RESYNC: Duration = Duration::from_hours(10);
    const WAIT: Duration = Duration::from_secs(7);

    fn ended(outcome: Outcome, applied: Applied) -> (PassResult, Next) {
        let reached = Reached { outcome, hindrance: Hindrance::ApplyFailed, applied, again: None };
        let Ended { result, next } = Ended::at(&reached, RESYNC, Instant::now(), |name| name.name == "followed");
        (result, next)
    }

    fn failed(applied: Applied) -> (PassResult, Next) {
        ended(Outcome::Failed("why".to_owned()), applied)
    }

    fn error(class: Class) -> CallError {
        CallError { what: "apply Service t/a".to_owned(), class, message: "no".to_owned() }
    }

    fn conflicts(names: &[&str]) -> Applied {
        let name = |name: &&str| Reference {
            api_version: "v1".to_owned(),
            kind: "Service".to_owned(),
            namespace: Some("t".to_owned()),
            name: (*name).to_owned(),
        };
        Applied { conflicts: names.iter().map(name).collect(), ..Applied::default() }
    }

    #[test]
    fn without_an_error_the_outcome_decides() {
        let ended = |outcome| ended(outcome, Applied::default());
        let resync = Next::After(RESYNC);
        assert_eq!(ended(Outcome::Applied), (PassResult::Settled, resync));
        assert_eq!(ended(Outcome::Gated), (PassResult::Waiting, resync));
        assert_eq!(ended(Outcome::Refused(Refusal::Waiting(Vec::new()))), (PassResult::Waiting, resync));
        assert_eq!(ended(Outcome::Refused(Refusal::Invalid(Vec::new()))), (PassResult::Refused, resync));
        assert_eq!(ended(Outcome::Failed("why".to_owned())), (PassResult::Failed, resync));
    }

    #[test]
    fn what_waits_a_moment_is_looked_at_again_then() {
        let at = |outcome| {
            let (applied, again) = (Applied::default(), Some(WAIT));
            let reached = Reached { outcome, hindrance: Hindrance::ApplyFailed, applied, again };
            Ended::at(&reached, RESYNC, Instant::now(), |_| true).next
        };
        assert_eq!((at(Outcome::Applied), at(Outcome::Gated)), (Next::After(WAIT), Next::After(WAIT)));
    }

    #[test]
    fn an_error_that_may_be_over_the_next_time_decides_before_the_outcome() {
        let with = |class| Applied { error: Some(error(class)), waits: true, ..Applied::default() };
        let throttled = with(Class::Transient(Some(WAIT)));
        assert_eq!(ended(Outcome::Gated, throttled), (PassResult::Retried, Next::Retry(Some(WAIT))));
        assert_eq!(failed(with(Class::Forbidden)), (PassResult::Retried, Next::Denied));
    }

    #[tokio::test(start_paused = true)]
    async fn what_the_server_does_not_take_is_tried_again_when_it_is_time() {
        let tried_again = Some(Instant::now() + WAIT);
        let applied = Applied { error: Some(error(Class::Permanent)), tried_again, ..Applied::default() };
        assert_eq!(failed(applied), (PassResult::Failed, Next::After(WAIT)));
    }

    #[test]
    fn a_child_that_has_to_go_first_is_waited_for() {
        let applied = Applied { waits: true, ..conflicts(&["somebody-elses"]) };
        assert_eq!(failed(applied), (PassResult::Waiting, Next::Retry(None)));
    }

    #[test]
    fn a_name_that_somebody_else_has_is_looked_at_unless_the_watch_follows_it() {
        assert_eq!(failed(conflicts(&["followed"])), (PassResult::Waiting, Next::After(RESYNC)));
        let one_is_not = failed(conflicts(&["followed", "somebody-elses"]));
        assert_eq!(one_is_not, (PassResult::Waiting, Next::After(LOOK_AGAIN)));
    }
}
