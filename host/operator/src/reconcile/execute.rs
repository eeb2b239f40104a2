//! Executes a plan. Stops at a failed request, and does not start if a plan gate is closed.
//!
//! The order is: finalizers, children, deletion of unplanned children. After a failed request, the pass still writes
//! the status.

use std::time::Duration;

use kaos_policy::{
    contract::Outcome,
    render::{Rendered, Verdict},
};
use serde_json::Value;

use super::{
    access::Access,
    applied::Applied,
    children::{
        apply::{ChildrenResult, apply_all},
        handover::{handover, stays},
        prune::{AGAIN, prune, spare_unseen, unwanted},
    },
    context::Rules,
    deletion::finalizers::{Finalizers, hold, left_on, retire},
    error::CallError,
    memory::Memory,
    prepare::{Prepared, Stopped},
    resolve::{gates, startup_grace},
    subject::Subject,
};
use crate::{catalogue::Catalogue, status::Hindrance};

/// Executes a prepared plan.
pub(crate) async fn execute(
    access: &Access,
    catalogue: &Catalogue,
    rules: &Rules,
    subject: &mut Subject<'_>,
    prepared: &mut Prepared,
    memory: &mut Memory,
) -> Applied {
    match prepared.stopped.take() {
        Some(Stopped::Open(error)) => return Applied::open(error),
        Some(Stopped::Refused(error)) => return Applied::refused(error, &prepared.plan, memory, rules.resync),
        None => {}
    }
    let (wrote, stopped) = match retire_finalizers(access, subject, memory).await {
        Ok(wrote) => (wrote, None),
        Err(error) => (false, Some(error)),
    };
    let mut again = None;
    let held = hold_back(access, catalogue, subject, &prepared.rendered, memory, &mut again);
    let mut applied = match (held, stopped) {
        (Some((outcome, hindrance)), stopped) => {
            memory.children.conflicts.clear();
            access.watch.contest(subject.key, &memory.children.conflicts);
            Applied::held(outcome, hindrance, stopped)
        }
        (None, Some(error)) => Applied::stopped_by(error),
        (None, None) => carry_out(access, rules, subject, &prepared.plan, memory, &mut again).await,
    };
    applied.wrote |= wrote;
    applied.again = again;
    applied
}

/// Removes finalizers of earlier operators. Returns whether the operator wrote the object.
async fn retire_finalizers(access: &Access, subject: &mut Subject<'_>, memory: &Memory) -> Result<bool, CallError> {
    let retired = Finalizers::on(subject, memory).retired;
    retire(access, &subject.served, &mut subject.object, &retired).await
}

/// Returns the outcome if the pass must not execute a plan now; `None` if it must. Sets `again` to the time until the
/// next pass if the plan waits for a short time.
fn hold_back(
    access: &Access,
    catalogue: &Catalogue,
    subject: &Subject<'_>,
    rendered: &Rendered,
    memory: &mut Memory,
    again: &mut Option<Duration>,
) -> Option<(Outcome, Hindrance)> {
    let unknown_pin = subject.selected.unknown_pin.as_ref();
    let outcome = match &rendered.verdict {
        Verdict::Refused(refusal) => Some(Outcome::Refused(refusal.clone())),
        Verdict::Failed(failure) => Some(Outcome::Failed(failure.failure.to_string())),
        Verdict::Planned(_) if unknown_pin.is_some() => unknown_pin.cloned().map(Outcome::Failed),
        Verdict::Planned(planned) => {
            let children = access.watch.children(&subject.uid);
            if planned.gates.is_empty() && gates::is_first(planned, &subject.object, &children) {
                *again = startup_grace::wait(catalogue, &access.watch, rendered, memory);
            }
            let waits = again.is_some() || gates::bind(planned, &subject.object, &children);
            waits.then_some(Outcome::Gated)
        }
    };
    let hindrance = if unknown_pin.is_some() { Hindrance::PolicyNotFound } else { Hindrance::ApplyFailed };
    outcome.map(|outcome| (outcome, hindrance))
}

/// Sets the finalizer, applies the children, and deletes unplanned children. Sets `again` to the time until the next
/// pass if unplanned children stay for a while.
async fn carry_out(
    access: &Access,
    rules: &Rules,
    subject: &mut Subject<'_>,
    plan: &[Value],
    memory: &mut Memory,
    again: &mut Option<Duration>,
) -> Applied {
    let claimed = subject.selected.descent.kind.claims().find_map(|claim| claim.finalizer.clone());
    let ours = memory.finalizers.asked.clone().or(claimed);
    let held = match set_finalizer(access, subject, ours, memory).await {
        Ok(held) => held,
        Err(error) => return Applied::stopped_by(error),
    };
    memory.children.rejected_plan = None;
    let mut children = apply_all(access, rules.resync, subject, plan, &mut memory.children).await;
    access.watch.contest(subject.key, &memory.children.conflicts);
    // Never prune while a fallback serves. The fallback does not know the failed revision's children, and deleting a
    // volume claim would lose its data.
    if children.in_full() && !subject.selected.stands_in() {
        *again = clean(access, subject, plan, &mut children).await;
    }
    children.wrote |= held;
    Applied::of(children)
}

/// Deletes the children that are not in the plan, except children that stay for a while. Returns the time after which a
/// pass must check the children that stay; `None` if no child stays.
async fn clean(
    access: &Access,
    subject: &Subject<'_>,
    plan: &[Value],
    children: &mut ChildrenResult,
) -> Option<Duration> {
    let mut leaving = unwanted(&access.watch, &subject.uid, plan);
    let mut again = spare_unseen(&access.watch, &mut leaving, children).then_some(AGAIN);
    if let Some(handover) = handover(&access.watch, access.clock.now(), &leaving, plan) {
        leaving.retain(|child| !stays(child, plan));
        let told = handover.told();
        children.decisions.push(told.message.clone());
        access.tell(&subject.object, &told).await;
        again = Some(again.map_or(handover.left, |again| again.min(handover.left)));
    }
    prune(access, &leaving, children).await;
    again
}

/// Sets `ours` as the only finalizer of this operator on the object. If `ours` is `None`, removes all finalizers of
/// this operator. While a fallback serves, the failed revision's finalizer stays, because the revision's children stay
/// too. Returns whether the operator wrote the object.
async fn set_finalizer(
    access: &Access,
    subject: &mut Subject<'_>,
    ours: Option<String>,
    memory: &mut Memory,
) -> Result<bool, CallError> {
    let held = match &ours {
        Some(finalizer) => hold(access, &subject.served, &mut subject.object, finalizer).await?,
        None => false,
    };
    if subject.selected.stands_in() {
        return Ok(held);
    }
    let known = Finalizers { ours, ..Finalizers::default() };
    let left = left_on(access, &subject.served, &subject.object, &known, memory).await?;
    Ok(retire(access, &subject.served, &mut subject.object, &left).await? || held)
}
