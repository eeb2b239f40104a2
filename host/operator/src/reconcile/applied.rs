//! The result of the acting part of a pass. Only its constructors make one, and only from one comes a status.

use std::time::Duration;

use kaos_policy::contract::Outcome;
use serde_json::Value;
use tokio::time::Instant;

use super::{
    children::apply::ChildrenResult, children::rejected::Rejected, error::CallError, memory::Memory,
    pass_failed::PassFailed,
};
use crate::{hashing::hash, status::Hindrance};

/// The result of a pass, before its status.
pub(crate) struct Applied {
    pub(crate) outcome: Outcome,
    /// The reason to report for [`Outcome::Failed`].
    pub(crate) hindrance: Hindrance,
    pub(crate) children: ChildrenResult,
    /// Time until the next look, if a short wait is in progress.
    pub(crate) again: Option<Duration>,
    /// Whether the pass wrote anything.
    pub(crate) wrote: bool,
    /// Whether it is unknown if the API server accepts the plan.
    pub(crate) is_open: bool,
    /// Why the pass did not finish, if so.
    unfinished: Option<PassFailed>,
}

impl Applied {
    /// Derives the outcome from the children.
    pub(super) fn of(children: ChildrenResult) -> Self {
        let (outcome, hindrance) = match children.hindrance() {
            None => (Outcome::Applied, Hindrance::ApplyFailed),
            Some((hindrance, text)) => (Outcome::Failed(text), hindrance),
        };
        let wrote = children.wrote;
        Self { outcome, hindrance, children, again: None, wrote, is_open: false, unfinished: None }
    }

    /// A call before the children failed.
    pub(super) fn stopped_by(error: CallError) -> Self {
        let mut children = ChildrenResult::default();
        children.failed(error);
        Self::of(children)
    }

    /// The dry run failed, so it is unknown whether the API server accepts the plan.
    pub(super) fn open(error: CallError) -> Self {
        Self { is_open: true, ..Self::stopped_by(error) }
    }

    /// The API server rejects the plan as a whole. The retries follow those of a rejected child.
    pub(super) fn refused(error: CallError, plan: &[Value], memory: &mut Memory, longest: Duration) -> Self {
        let before = memory.children.rejected_plan.as_ref();
        let rejected = Rejected::new(hash(plan), &error, before, longest, Instant::now());
        let mut children = ChildrenResult { tried_again: Some(rejected.until), ..ChildrenResult::default() };
        memory.children.rejected_plan = Some(rejected);
        children.failed(error);
        Self::of(children)
    }

    /// There is no plan to execute now. `error` only leads to a retry: the outcome explains the missing plan.
    pub(super) fn held(outcome: Outcome, hindrance: Hindrance, error: Option<CallError>) -> Self {
        let children = ChildrenResult { error, ..ChildrenResult::default() };
        Self { outcome, hindrance, ..Self::of(children) }
    }

    /// The pass did not finish.
    pub(super) fn unfinished(why: PassFailed) -> Self {
        let outcome = Outcome::Failed(why.condition().2);
        Self { outcome, unfinished: Some(why), ..Self::of(ChildrenResult::default()) }
    }

    /// Why the pass did not finish, if so.
    pub(super) fn why_unfinished(&self) -> Option<&PassFailed> {
        self.unfinished.as_ref()
    }

    /// A result of these parts.
    #[cfg(test)]
    pub(super) fn stub(outcome: Outcome, children: ChildrenResult, again: Option<Duration>) -> Self {
        Self { outcome, again, ..Self::of(children) }
    }
}
