//! Executes a plan, up to the first failed call or closed plan gate.
//!
//! First the finalizers, then the children, then the deletion of unplanned children. A failed call ends the execution
//! but not the pass, which still writes the status.

use std::time::Duration;

use kaos_policy::{
    contract::Outcome,
    render::{Rendered, Verdict},
};
use serde_json::Value;
use tokio::time::Instant;

use super::{
    children::apply::Applied, children::handover::stays, children::prune::AGAIN, children::rejected::Rejected,
    context::Context, deletion::finalizers::Held, error::CallError, mark::Mark, memory::Memory, resolve::gates,
    subject::Subject,
};
use crate::{hashing::hash, status::Hindrance};

/// The key of a whole plan in the map of rejected children.
const PLAN: Mark = 0;

/// The result of executing a plan, for the assessment.
pub(super) struct Reached {
    pub(super) outcome: Outcome,
    pub(super) hindrance: Hindrance,
    pub(super) applied: Applied,
    /// Time until the next look, if a short wait is in progress.
    pub(super) again: Option<Duration>,
}

impl Reached {
    /// Derives the outcome from the children.
    fn with(applied: Applied, again: Option<Duration>) -> Self {
        let (outcome, hindrance) = match applied.hindrance() {
            None => (Outcome::Applied, Hindrance::ApplyFailed),
            Some((hindrance, text)) => (Outcome::Failed(text), hindrance),
        };
        Self { outcome, hindrance, applied, again }
    }

    /// A call before the children failed.
    pub(super) fn stopped_by(error: CallError) -> Self {
        let mut applied = Applied::default();
        applied.failed(error);
        Self::with(applied, None)
    }

    /// The API server rejects the plan as a whole. The retries follow those of a rejected child.
    pub(super) fn refused(error: CallError, plan: &[Value], memory: &mut Memory, longest: Duration) -> Self {
        let before = memory.rejected.get(&PLAN);
        let rejected = Rejected::new(hash(plan), &error, before, longest, Instant::now());
        let mut applied = Applied { tried_again: Some(rejected.until), ..Applied::default() };
        memory.rejected.insert(PLAN, rejected);
        applied.failed(error);
        Self::with(applied, None)
    }
}

impl Context {
    /// Executes the plan, if there is one.
    pub(super) async fn reach(
        &self,
        subject: &mut Subject<'_>,
        rendered: &Rendered,
        plan: &[Value],
        memory: &mut Memory,
        wrote: &mut bool,
    ) -> Reached {
        let retired = Held::on(subject, memory).retired;
        let retired = self.retire(&subject.served, &mut subject.object, &retired).await;
        let stopped = retired.inspect(|retired| *wrote |= *retired).err();
        let mut again = None;
        let held_back = match &rendered.verdict {
            Verdict::Refused(refusal) => Some(Outcome::Refused(refusal.clone())),
            Verdict::Failed(failure) => Some(Outcome::Failed(failure.failure.to_string())),
            Verdict::Planned(_) if subject.selected.unknown_pin.is_some() => {
                subject.selected.unknown_pin.clone().map(Outcome::Failed)
            }
            Verdict::Planned(planned) => {
                let children = self.watch.children(&subject.uid);
                if planned.gates.is_empty() && gates::is_first(planned, &subject.object, &children) {
                    again = self.awaits(rendered, memory);
                }
                let waits = again.is_some() || gates::bind(planned, &subject.object, &children);
                waits.then_some(Outcome::Gated)
            }
        };
        if let Some(outcome) = held_back {
            memory.conflicts.clear();
            self.watch.contest(subject.key, &memory.conflicts);
            let named_in_vain = subject.selected.unknown_pin.is_some();
            let hindrance = if named_in_vain { Hindrance::PolicyNotFound } else { Hindrance::ApplyFailed };
            // The outcome explains the missing plan. The error only leads to a retry for the finalizer.
            let applied = Applied { error: stopped, ..Applied::default() };
            return Reached { outcome, hindrance, applied, again };
        }
        if let Some(error) = stopped {
            return Reached::stopped_by(error);
        }
        let claimed = subject.selected.descent.kind.claims().find_map(|claim| claim.finalizer.clone());
        let ours = memory.finalizer.clone().or(claimed);
        match self.hold_by(subject, ours, memory).await {
            Ok(held) => *wrote |= held,
            Err(error) => return Reached::stopped_by(error),
        }
        memory.rejected.remove(&PLAN);
        let mut applied = self.apply_all(subject, plan, memory).await;
        self.watch.contest(subject.key, &memory.conflicts);
        // Never prune while a fallback serves: it does not know the failed revision's children, and a deleted volume
        // claim is gone for good.
        if applied.in_full() && !subject.selected.stands_in() {
            let mut unwanted = self.unwanted(&subject.uid, plan);
            if self.spare_unseen(&mut unwanted, &mut applied) {
                again = Some(AGAIN);
            }
            if let Some(handover) = self.handover(&unwanted, plan) {
                unwanted.retain(|child| !stays(child, plan));
                let told = handover.told();
                applied.decisions.push(told.message.clone());
                self.tell(&subject.object, &told).await;
                again = Some(again.map_or(handover.left, |again: Duration| again.min(handover.left)));
            }
            self.prune(&unwanted, &mut applied).await;
        }
        *wrote |= applied.wrote;
        Reached::with(applied, again)
    }

    /// Sets `ours` as the only finalizer of this operator on the object, or removes them all. While a fallback serves,
    /// the failed revision's finalizer stays, as its children do. Returns whether it wrote.
    async fn hold_by(
        &self,
        subject: &mut Subject<'_>,
        ours: Option<String>,
        memory: &mut Memory,
    ) -> Result<bool, CallError> {
        let held = match &ours {
            Some(finalizer) => self.hold(&subject.served, &mut subject.object, finalizer).await?,
            None => false,
        };
        if subject.selected.stands_in() {
            return Ok(held);
        }
        let known = Held { ours, retired: Vec::new() };
        let left = self.left_on(&subject.served, &subject.object, &known, memory).await?;
        Ok(self.retire(&subject.served, &mut subject.object, &left).await? || held)
    }
}
