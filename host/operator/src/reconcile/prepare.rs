//! Prepares a plan for its execution: asks the policies, and sends the plan of an installed policy as a dry run. If the
//! API server refuses the plan, the predecessor answers.

use std::sync::Arc;

use kaos_policy::render::{Rendered, Renderer, Verdict};
use serde_json::Value;

use super::{
    access::Access,
    dry_run::rehearse,
    ended::{Ended, LOOK_AGAIN, Next},
    error::{CallError, Class},
    memory::Memory,
    policy_runner::PolicyRunner,
    resolve::stamped,
    select::{Asked, ask, fall_back},
    subject::Subject,
};
use crate::metrics::PassResult;

/// The reason why the pass does not execute a plan.
pub(crate) enum Stopped {
    /// The dry run failed, so the operator does not know whether the API server accepts the plan.
    Open(CallError),
    /// The API server refuses the plan, and no other policy accepts the object.
    Refused(CallError),
}

/// The policies' answer, which the pass can execute now.
pub(crate) struct Prepared {
    pub(crate) renderer: Arc<Renderer>,
    pub(crate) rendered: Arc<Rendered>,
    /// The plan with its hashes. Empty without a plan.
    pub(crate) plan: Vec<Value>,
    pub(crate) stopped: Option<Stopped>,
}

/// Prepares a plan.
///
/// If the pass must end without executing an answer, returns as error the result of the pass and the time of the next
/// pass.
pub(crate) async fn prepare(
    runner: &PolicyRunner,
    access: &Access,
    subject: &mut Subject<'_>,
    memory: &mut Memory,
) -> Result<Prepared, Ended> {
    let prepared = find_plan(runner, access, subject, memory).await?;
    if let Verdict::Failed(failure) = &prepared.rendered.verdict
        && failure.failure.says_nothing_of_the_object()
    {
        return Err(Ended { result: PassResult::Retried, next: Next::Retry(None) });
    }
    if let Some(planned) = prepared.rendered.planned() {
        memory.finalizers.asked.clone_from(&planned.finalizer);
    }
    Ok(prepared)
}

/// Asks the active policies, then each fallback, until the API server accepts a plan or no fallback is left.
async fn find_plan(
    runner: &PolicyRunner,
    access: &Access,
    subject: &mut Subject<'_>,
    memory: &mut Memory,
) -> Result<Prepared, Ended> {
    let waits = |result| Ended { result, next: Next::After(LOOK_AGAIN) };
    // The first answer whose plan the API server refuses: that of the newest policies. The status reports this refusal
    // if no fallback has a plan that the server accepts.
    let mut refused: Option<Prepared> = None;
    loop {
        let (renderer, rendered) = match ask(runner, subject.key, &subject.object, &mut subject.selected, memory).await
        {
            Asked::Answered(renderer, rendered) => (renderer, rendered),
            Asked::Pending => return Err(waits(PassResult::Waiting)),
            Asked::Impossible => return Err(waits(PassResult::Failed)),
        };
        if matches!(&rendered.verdict, Verdict::Failed(failure) if !failure.failure.says_nothing_of_the_object())
            && let Some(refused) = refused.take()
        {
            return Ok(refused);
        }
        let Some(plan) = stamped(runner, rendered.manifests(), memory) else {
            return Err(waits(PassResult::Waiting));
        };
        let rehearsed = rehearse(access, subject, &rendered, &plan, memory).await;
        let mut prepared = Prepared { renderer, rendered, plan, stopped: None };
        let (child, why) = match rehearsed {
            Ok(Some(refusal)) => refusal,
            Ok(None) => return Ok(prepared),
            Err(error) => {
                prepared.stopped = Some(Stopped::Open(error));
                return Ok(prepared);
            }
        };
        let policy = prepared.rendered.author(&child);
        let decision = prepared.rendered.decision();
        if !fall_back(&runner.metrics, subject.key, &mut subject.selected, policy, (&why, decision)) {
            return Ok(refused.unwrap_or(prepared));
        }
        memory.plan.needed.extend(prepared.rendered.needs.iter().cloned());
        let what = format!("execute the plan of policy {}", policy.name);
        prepared.stopped = Some(Stopped::Refused(CallError { what, class: Class::Permanent, message: why }));
        refused.get_or_insert(prepared);
    }
}
