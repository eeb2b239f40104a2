//! The result of a pass, and the time of the next pass over its object.

use std::time::Duration;

use kaos_policy::contract::{Outcome, Reference, Refusal};
use tokio::time::Instant;

use super::{
    applied::Applied,
    error::{CallError, Class},
};
use crate::metrics::PassResult;

/// The time until the next pass, if the object waits for a change that possibly no watch reports.
pub(super) const LOOK_AGAIN: Duration = Duration::from_mins(1);

/// The time of the next pass over an object. An event can cause an earlier pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// No pass follows without an event: the object is gone, or the watch will report a change.
    Never,
    /// The next pass starts after this time.
    After(Duration),
    /// The next pass starts after a backoff that grows with each failure, but not before this time.
    Retry(Option<Duration>),
    /// The next pass starts after a backoff that grows with each failure, or as soon as the operator gets the missing
    /// rights.
    Denied,
}

/// The result of a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) result: PassResult,
    pub(crate) next: Next,
}

impl Ended {
    /// Returns the end of a pass after a failed request. `resync` is the time until the next pass if there is no event.
    pub(super) fn by(error: &CallError, resync: Duration) -> Self {
        let (result, next) = match error.class {
            Class::Permanent => (PassResult::Failed, Next::After(resync)),
            Class::Transient(wait) => (PassResult::Retried, Next::Retry(wait)),
            Class::Gone => (PassResult::Retried, Next::Retry(None)),
            Class::Forbidden => (PassResult::Retried, Next::Denied),
        };
        Self { result, next }
    }

    /// Returns the end of a pass that reached an outcome. If another owner's object has the name of a child, the
    /// function `follows` returns whether the watch will report when the name becomes free.
    pub(super) fn at(applied: &Applied, resync: Duration, now: Instant, follows: impl Fn(&Reference) -> bool) -> Self {
        let Applied { outcome, children, again, .. } = applied;
        if let Some(error) = children.passing_error() {
            return Self::by(error, resync);
        }
        let soon = Next::After(again.unwrap_or(resync));
        let later = Next::After(children.tried_again.map_or(resync, |at| at.saturating_duration_since(now)));
        let (result, next) = match outcome {
            Outcome::Applied => (PassResult::Settled, soon),
            Outcome::Gated | Outcome::Refused(Refusal::Waiting(_)) => (PassResult::Waiting, soon),
            Outcome::Refused(_) => (PassResult::Refused, Next::After(resync)),
            Outcome::Failed(_) if children.waits => (PassResult::Waiting, Next::Retry(None)),
            Outcome::Failed(_) if !children.conflicts.is_empty() => {
                let followed = children.conflicts.iter().all(follows);
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
    use crate::reconcile::children::apply::ChildrenResult;

    const RESYNC: Duration = Duration::from_hours(10);
    const WAIT: Duration = Duration::from_secs(7);

    fn ended(outcome: Outcome, children: ChildrenResult) -> (PassResult, Next) {
        let applied = Applied::stub(outcome, children, None);
        let Ended { result, next } = Ended::at(&applied, RESYNC, Instant::now(), |name| name.name == "followed");
        (result, next)
    }

    fn failed(children: ChildrenResult) -> (PassResult, Next) {
        ended(Outcome::Failed("why".to_owned()), children)
    }

    fn error(class: Class) -> CallError {
        CallError { what: "apply Service t/a".to_owned(), class, message: "no".to_owned() }
    }

    fn conflicts(names: &[&str]) -> ChildrenResult {
        let name = |name: &&str| Reference {
            api_version: "v1".to_owned(),
            kind: "Service".to_owned(),
            namespace: Some("t".to_owned()),
            name: (*name).to_owned(),
        };
        ChildrenResult { conflicts: names.iter().map(name).collect(), ..ChildrenResult::default() }
    }

    #[test]
    fn without_an_error_the_outcome_decides() {
        let ended = |outcome| ended(outcome, ChildrenResult::default());
        let resync = Next::After(RESYNC);
        assert_eq!(ended(Outcome::Applied), (PassResult::Settled, resync));
        assert_eq!(ended(Outcome::Gated), (PassResult::Waiting, resync));
        assert_eq!(ended(Outcome::Refused(Refusal::Waiting(Vec::new()))), (PassResult::Waiting, resync));
        assert_eq!(ended(Outcome::Refused(Refusal::Invalid(Vec::new()))), (PassResult::Refused, resync));
        assert_eq!(ended(Outcome::Failed("why".to_owned())), (PassResult::Failed, resync));
    }

    #[test]
    fn a_short_wait_decides_when_to_look_again() {
        let at = |outcome| {
            let applied = Applied::stub(outcome, ChildrenResult::default(), Some(WAIT));
            Ended::at(&applied, RESYNC, Instant::now(), |_| true).next
        };
        assert_eq!((at(Outcome::Applied), at(Outcome::Gated)), (Next::After(WAIT), Next::After(WAIT)));
    }

    #[test]
    fn an_error_that_may_be_over_the_next_time_decides_before_the_outcome() {
        let with = |class| ChildrenResult { error: Some(error(class)), waits: true, ..ChildrenResult::default() };
        let throttled = with(Class::Transient(Some(WAIT)));
        assert_eq!(ended(Outcome::Gated, throttled), (PassResult::Retried, Next::Retry(Some(WAIT))));
        assert_eq!(failed(with(Class::Forbidden)), (PassResult::Retried, Next::Denied));
    }

    #[tokio::test(start_paused = true)]
    async fn a_rejected_manifest_is_retried_at_its_time() {
        let tried_again = Some(Instant::now() + WAIT);
        let children =
            ChildrenResult { error: Some(error(Class::Permanent)), tried_again, ..ChildrenResult::default() };
        assert_eq!(failed(children), (PassResult::Failed, Next::After(WAIT)));
    }

    #[test]
    fn a_child_that_has_to_go_first_is_waited_for() {
        let children = ChildrenResult { waits: true, ..conflicts(&["somebody-elses"]) };
        assert_eq!(failed(children), (PassResult::Waiting, Next::Retry(None)));
    }

    #[test]
    fn a_conflicting_name_is_looked_at_unless_the_watch_follows_it() {
        assert_eq!(failed(conflicts(&["followed"])), (PassResult::Waiting, Next::After(RESYNC)));
        let one_is_not = failed(conflicts(&["followed", "somebody-elses"]));
        assert_eq!(one_is_not, (PassResult::Waiting, Next::After(LOOK_AGAIN)));
    }
}
