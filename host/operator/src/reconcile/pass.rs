//! Runs all steps of a pass in order. Only the steps that send requests have a client for the API server; the other
//! steps only compute.

use std::sync::Arc;

use serde_json::Value;
use tokio::time::Instant;
use tracing::Instrument as _;

use super::{
    applied::Applied,
    children::decide::is_going,
    context::Context,
    deletion,
    ended::{Ended, LOOK_AGAIN, Next},
    error::CallError,
    event_text::EventText,
    execute::execute,
    ledger::record,
    memory::Memory,
    pass_failed::PassFailed,
    prepare::prepare,
    proof::{self, Start},
    select::select,
    status::{
        publish::publish_failure,
        report::{remember, report},
    },
    subject::Subject,
};
use crate::{
    budgets::Admission,
    metrics::{PassResult, Unserved},
    trace::{PassTrace, step},
    watch::ObjectKey,
};

/// Runs one pass over an object. Turns errors into retries.
pub(crate) async fn pass(context: &Context, key: &ObjectKey, trace: &PassTrace) -> Ended {
    let Context { runner, access, sync_gate, .. } = context;
    let mut start = Start::of(context, key);
    // The pass need not start soon: the queue wakes all objects when every list is complete.
    let unlisted = access.watch.unlisted(&key.of);
    if unlisted.contains(&key.of) || sync_gate.holds(&key.of, !unlisted.is_empty()) {
        tracing::debug!(object = %key, ?unlisted, "the pass waits for the first lists");
        return Ended { result: PassResult::Waiting, next: Next::After(LOOK_AGAIN) };
    }
    let Some(object) = access.watch.object(key) else { return gone(context, key) };
    let is_loading = runner.catalogue.load().is_some_and(|snapshot| snapshot.is_loading(&object));
    if is_loading && !is_going(&object) {
        // The pass need not start soon: the swap that installs the policy wakes the object.
        return Ended { result: PassResult::Waiting, next: Next::After(LOOK_AGAIN) };
    }
    let mut memory = context.memories.take(key, object["metadata"]["uid"].as_str().unwrap_or_default());
    start.before = std::mem::replace(&mut memory.proof, start.unproven);
    let may_join = memory.trace.is_open(&object, Instant::now());
    let span = trace.start(key, &object, may_join);
    serve(context, key, object, is_loading, (start, memory)).instrument(span).await
}

/// Runs the pass over an object that exists.
async fn serve(
    context: &Context,
    key: &ObjectKey,
    object: Arc<Value>,
    is_loading: bool,
    (start, mut memory): (Start, Memory),
) -> Ended {
    let Context { runner, access, .. } = context;
    // 1. Select (no client): chooses the policies for the object's kind and namespace, or the pinned policy. A deletion
    // does not wait for a policy that the operator still loads.
    let selected = if is_loading { None } else { select(&runner.catalogue, key, &object) };
    let ended = match selected {
        Some(selected) => {
            runner.catalogue.ledger().chooses(key, selected.chosen);
            memory.unserved = memory.unserved.filter(|why| *why != Unserved::NoPolicy);
            match access.served(&key.of) {
                Ok(served) => {
                    let mut subject = Subject::new(key, served, selected, object);
                    steps(context, &mut subject, start, &mut memory).await
                }
                Err(error) => Err(error),
            }
        }
        None => unserved(context, key, &object, is_loading, &mut memory).await,
    };
    keep(context, key, ended, memory)
}

/// Runs the steps of a pass over an object that has a policy.
async fn steps(
    context: &Context,
    subject: &mut Subject<'_>,
    start: Start,
    memory: &mut Memory,
) -> Result<Ended, CallError> {
    let Context { runner, access, declared_fields, rules, .. } = context;
    // 2. Delete (client): if the object is being deleted, the pass only does the cleanup.
    if is_going(&subject.object) {
        runner.budgets.forget(subject.key);
        return deletion::end(runner, access, rules, subject, memory).instrument(step!("delete")).await;
    }
    // If a proof of an earlier process shows that the object is settled, the pass ends here.
    if let Some(ended) = proof::skip(context, subject, memory).await {
        return Ok(ended);
    }
    if let Some(ended) = wait_for_budget(context, subject, start, memory).await {
        return Ok(ended);
    }
    // 3. Resolve (no client): computes needs and plan. Rehearse (client): sends a dry run of an installed policy's
    //    plan.
    let mut prepared = match prepare(runner, access, subject, memory).instrument(step!("prepare")).await {
        Ok(prepared) => prepared,
        Err(ended) => return Ok(ended),
    };
    // 4. Execute (client): handles finalizers and plan gates, applies the children, and prunes.
    let executing = execute(access, &runner.catalogue, rules, subject, &mut prepared, memory);
    let applied: Applied = executing.instrument(step!("execute")).await;
    // 5. Judge (no client): records which revisions answer for the object, and which fail on it.
    record(&runner.catalogue, subject, &applied);
    // 6. End (no client): computes when the next pass must run.
    let ended = Ended::at(&applied, rules.resync, Instant::now(), |name| access.watch.follows(name));
    // 7. Report: composes the status (no client), and writes it (client). Does not report a first transient failure,
    // because the retry may succeed.
    let is_quiet = remember(access, subject, &prepared, &applied, memory);
    let mut wrote = applied.wrote;
    if !is_quiet {
        let reporting = report(runner, access, declared_fields, subject, &prepared, &applied, memory);
        match reporting.instrument(step!("report")).await? {
            Ok(written) => wrote |= written,
            Err(ended) => return Ok(ended),
        }
        runner.catalogue.ledger().reported(subject.key);
    }
    if !wrote && !is_quiet {
        proof::make(context, start, subject, (&prepared, &applied), ended, memory).await;
    }
    let is_changed = wrote && ended.result == PassResult::Settled;
    Ok(if is_changed { Ended { result: PassResult::Changed, ..ended } } else { ended })
}

/// Ends the pass if the object's kind has used up its budget in the object's namespace.
async fn wait_for_budget(context: &Context, subject: &Subject<'_>, start: Start, memory: &mut Memory) -> Option<Ended> {
    let Context { runner, access, .. } = context;
    let (budgets, key) = (&runner.budgets, subject.key);
    let wait = match budgets.begin(key, subject.selected.descent.kind.answering(), Instant::now()) {
        Admission::Begins => return None,
        Admission::Waits(wait) => wait,
        Admission::BeginsToWait(wait) => {
            let (kind, namespace, limits) = (&key.of.kind, &key.namespace, budgets.described());
            let message =
                format!("the budget of {kind} objects in namespace {namespace} is used up: {limits} a minute");
            tracing::info!(object = %key, wait = wait.as_secs(), "{message}");
            let text = EventText { reason: "BudgetUsedUp".to_owned(), message, warning: false };
            access.tell(&subject.object, &text).await;
            wait
        }
    };
    // Mark the status as outdated, so that a rollout does not judge the object by it.
    runner.catalogue.ledger().outdated(key);
    memory.proof = start.before;
    Some(Ended { result: PassResult::OverBudget, next: Next::After(wait) })
}

/// Runs the pass over an object without a policy.
async fn unserved(
    context: &Context,
    key: &ObjectKey,
    object: &Arc<Value>,
    is_loading: bool,
    memory: &mut Memory,
) -> Result<Ended, CallError> {
    let Context { runner, access, declared_fields, memories, rules, .. } = context;
    if !is_loading {
        memory.unserved = Some(Unserved::NoPolicy);
    }
    runner.budgets.forget(key);
    if is_going(object) {
        // Do the cleanup as for an object without a policy. It waits a limited time for the policy to load.
        return deletion::end_unserved(access, rules, key, object, memory).await;
    }
    memories.put(key, memory.clone());
    publish_failure(access, declared_fields, memories, key, PassFailed::NoPolicy).await?;
    *memory = memories.take(key, &memory.uid);
    Ok(Ended { result: PassResult::Waiting, next: Next::Never })
}

/// Ends the pass, and stores its memory.
fn keep(context: &Context, key: &ObjectKey, ended: Result<Ended, CallError>, mut memory: Memory) -> Ended {
    let ended = ended.unwrap_or_else(|error| {
        memory.failures = memory.failures.saturating_add(1);
        tracing::warn!(object = %key, %error, failures = memory.failures, "the pass failed and is retried");
        Ended::by(&error, context.rules.resync)
    });
    if !matches!(ended.next, Next::Retry(_) | Next::Denied) && ended.result != PassResult::OverBudget {
        memory.failures = 0;
    }
    context.memories.put(key, memory);
    ended
}

/// Forgets an object that no longer exists.
fn gone(context: &Context, key: &ObjectKey) -> Ended {
    context.access.watch.forget(key);
    context.runner.catalogue.ledger().gone(key);
    context.runner.budgets.forget(key);
    context.memories.forget(key);
    Ended { result: PassResult::Gone, next: Next::Never }
}
