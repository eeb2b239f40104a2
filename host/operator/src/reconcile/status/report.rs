//! Reports the result of a pass: in memory for metrics and debug pages, and in the object's status.

use kaos_policy::{
    contract::Outcome,
    cut::{NOTE, cut},
};
use tokio::time::Instant;

use crate::{
    metrics::{PassResult, Unserved},
    reconcile::{
        access::Access,
        applied::Applied,
        ended::{Ended, Next},
        error::{CallError, SHOWN_FROM},
        memory::{APPLIED, Last, Memory},
        policy_runner::PolicyRunner,
        prepare::Prepared,
        status::{
            assess::{Assessment, assess},
            declared_fields::DeclaredFields,
            live_children::live_children,
            observed_generation,
            publish::publish,
        },
        subject::Subject,
    },
};

/// Stores the result in the object's memory. Returns `true` if the pass must not write the status, because the pass
/// failed but its retry may succeed.
pub(crate) fn remember(
    access: &Access,
    subject: &Subject<'_>,
    prepared: &Prepared,
    applied: &Applied,
    memory: &mut Memory,
) -> bool {
    let children = &applied.children;
    let error = children.passing_error();
    if error.is_some() || children.waits {
        memory.failures = memory.failures.saturating_add(1);
    }
    if let Some(error) = error {
        tracing::warn!(object = %subject.key, %error, failures = memory.failures, "the pass failed and is retried");
    }
    memory.since = subject.selected.since;
    memory.last = Some(Last {
        at: access.clock.now(),
        policy: prepared.rendered.policy.clone(),
        outcome: name_of(&applied.outcome).into(),
        decisions: children.decisions.iter().map(|decision| decision.as_str().into()).collect(),
    });
    (children.waits && memory.failures < SHOWN_FROM) || error.is_some_and(|error| !error.is_shown(memory.failures))
}

/// Writes the status. Returns whether the operator wrote the status. If the pass must end without this write, returns
/// as inner error how the pass ends.
pub(crate) async fn report(
    runner: &PolicyRunner,
    access: &Access,
    declared_fields: &DeclaredFields,
    subject: &Subject<'_>,
    prepared: &Prepared,
    applied: &Applied,
    memory: &mut Memory,
) -> Result<Result<bool, Ended>, CallError> {
    // This step uses the client only to read children of an earlier operator. The watch shows only their metadata.
    let (children, unseen) = live_children(access, &prepared.rendered, &subject.uid, &applied.children.answers).await;
    if let Some(wait) = observed_generation::wait(&subject.object, &applied.outcome, unseen, memory, Instant::now()) {
        let result = if applied.wrote { PassResult::Changed } else { PassResult::Waiting };
        return Ok(Err(Ended { result, next: Next::After(wait) }));
    }
    // This step has no client.
    let Assessment { status, fuel, is_failed, is_unasked, decision } =
        assess(runner, subject, prepared, applied, children).await;
    runner.metrics.fuel(&prepared.rendered.policy, fuel);
    if is_unasked {
        return Ok(Err(Ended { result: PassResult::Retried, next: Next::Retry(None) }));
    }
    memory.plan.decision = decision.or(memory.plan.decision);
    memory.unserved = if is_failed {
        Some(Unserved::PolicyFailed)
    } else {
        (!subject.selected.descent.without.is_empty()).then_some(Unserved::FellBack)
    };
    // This step uses the client.
    let at = (subject.key, &subject.served);
    publish(access, declared_fields, at, &subject.object, status, memory).await.map(Ok)
}

fn name_of(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Applied => APPLIED.to_owned(),
        Outcome::Gated => "gated".to_owned(),
        Outcome::Refused(refusal) => format!("refused: {}", refusal.reason()),
        // Cut this text, because the operator keeps it for every object.
        Outcome::Failed(message) => format!("failed: {}", cut(message, NOTE)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_a_long_failure_message_is_short() {
        assert_eq!(name_of(&Outcome::Failed("it traps".to_owned())), "failed: it traps");
        assert!(name_of(&Outcome::Failed("and then ".repeat(1 << 20))).len() < 2 * NOTE);
    }
}
