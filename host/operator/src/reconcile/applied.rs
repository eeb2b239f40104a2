//! The result of the steps of a pass that write to the cluster. Only the constructors in this file can create this
//! result, and other code needs this result to compose a status.

use std::time::Duration;

use kaos_policy::contract::Outcome;
use serde_json::Value;
use tokio::time::Instant;

use super::{
    children::apply::ChildrenResult, children::rejected::Rejected, error::CallError, memory::Memory,
    pass_failed::PassFailed,
};
use crate::{hashing::hash, status::Hindrance};

/// The result of a pass, before the status is composed.
pub(crate) struct Applied {
    pub(crate) outcome: Outcome,
    /// The reason that the status reports if the outcome is [`Outcome::Failed`].
    pub(crate) hindrance: Hindrance,
    pub(crate) children: ChildrenResult,
    /// The time until the next pass, if the object waits for something that the operator checks again soon.
    pub(crate) again: Option<Duration>,
    /// Whether the pass wrote an object.
    pub(crate) wrote: bool,
    /// `true` if the operator could not find out whether the API server accepts the plan, because the dry run failed.
    pub(crate) is_open: bool,
    /// Why the pass did not finish; `None` if it finished.
    unfinished: Option<PassFailed>,
}

impl Applied {
    /// Derives the outcome of the pass from the results for the children.
    pub(super) fn of(children: ChildrenResult) -> Self {
        let (outcome, hindrance) = match children.hindrance() {
            None => (Outcome::Applied, Hindrance::ApplyFailed),
            Some((hindrance, text)) => (Outcome::Failed(text), hindrance),
        };
        let wrote = children.wrote;
        Self { outcome, hindrance, children, again: None, wrote, is_open: false, unfinished: None }
    }

    /// Returns the result if a request failed before the operator applied children.
    pub(super) fn stopped_by(error: CallError) -> Self {
        let mut children = ChildrenResult::default();
        children.failed(error);
        Self::of(children)
    }

    /// Returns the result if the dry run failed, so that the operator does not know whether the API server accepts the
    /// plan.
    pub(super) fn open(error: CallError) -> Self {
        Self { is_open: true, ..Self::stopped_by(error) }
    }

    /// Returns the result if the API server rejects the plan as a whole. The delays of the retries are the same as for
    /// a rejected child.
    pub(super) fn refused(error: CallError, plan: &[Value], memory: &mut Memory, longest: Duration) -> Self {
        let before = memory.children.rejected_plan.as_ref();
        let rejected = Rejected::new(hash(plan), &error, before, longest, Instant::now());
        let mut children = ChildrenResult { tried_again: Some(rejected.until), ..ChildrenResult::default() };
        memory.children.rejected_plan = Some(rejected);
        children.failed(error);
        Self::of(children)
    }

    /// Returns the result if the pass executes no plan. The parameter `outcome` explains the reason, and `error` only
    /// causes a retry.
    pub(super) fn held(outcome: Outcome, hindrance: Hindrance, error: Option<CallError>) -> Self {
        let children = ChildrenResult { error, ..ChildrenResult::default() };
        Self { outcome, hindrance, ..Self::of(children) }
    }

    /// Returns the result of a pass that did not finish.
    pub(super) fn unfinished(why: PassFailed) -> Self {
        let outcome = Outcome::Failed(why.condition().2);
        Self { outcome, unfinished: Some(why), ..Self::of(ChildrenResult::default()) }
    }

    /// Returns why the pass did not finish; `None` if it finished.
    pub(super) fn why_unfinished(&self) -> Option<&PassFailed> {
        self.unfinished.as_ref()
    }

    #[cfg(test)]
    pub(super) fn stub(outcome: Outcome, children: ChildrenResult, again: Option<Duration>) -> Self {
        Self { outcome, again, ..Self::of(children) }
    }
}
