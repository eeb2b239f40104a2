//! Runs the workers. A worker takes an object from the queue, runs a pass, and queues the object again. A panic or an
//! error in a pass does not end the worker.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt as _;
use tokio::time::Instant;
use tracing::Instrument as _;

use crate::{
    metrics::PassResult,
    queue::Queue,
    reconcile::{Context, Ended, Next, PassFailed, pass, publish_failure, unless_given_up},
    trace::PassTrace,
    watch::ObjectKey,
};

/// The delay before the operator retries one of many objects that wait for missing rights. If the pass over this object
/// succeeds, an administrator has granted the rights.
const RIGHTS_PROBE_INTERVAL: Duration = Duration::from_secs(30);

/// Runs passes until the queue is closed.
pub(super) async fn work(context: Arc<Context>, queue: Queue, deadline: Duration) {
    while let Some(lease) = queue.next().await {
        let key = lease.key().clone();
        let (kind, namespace, name) = (&*key.of.kind, &*key.namespace, &*key.name);
        let span = tracing::info_span!("pass", kind, namespace, name, trace_id = tracing::field::Empty);
        let (trace, started, rights) = (PassTrace::default(), Instant::now(), context.access.watch.rights());
        let running = AssertUnwindSafe(unless_given_up(pass(&context, &key, &trace))).catch_unwind();
        // The future of a pass is large, so a box avoids that the worker's own future contains it.
        let ended = match tokio::time::timeout(deadline, Box::pin(running)).instrument(span).await {
            Ok(Ok(Some(ended))) => ended,
            Ok(Ok(None)) => {
                tracing::debug!(object = %key, "aborted the pass because of the shutdown");
                continue;
            }
            Ok(Err(panic)) => {
                let reason = panic.downcast_ref::<String>().map(String::as_str);
                let reason = reason.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
                tracing::error!(object = %key, reason, "a pass panicked");
                report(&context, &key, PassFailed::Panicked(reason.to_owned())).await;
                Ended { result: PassResult::Failed, next: Next::Retry(None) }
            }
            Err(_) => {
                tracing::warn!(object = %key, seconds = deadline.as_secs(), "a pass took too long");
                report(&context, &key, PassFailed::Late(deadline)).await;
                Ended { result: PassResult::Retried, next: Next::Retry(None) }
            }
        };
        trace.ended(ended.result.label());
        context.runner.metrics.pass(&key.of, ended.result, started.elapsed(), trace.id());
        match ended.next {
            Next::Never => {
                queue.succeeded(&key);
                context.access.watch.was_let_in(&key);
            }
            // The pass did not run the policies, so its end does not reset the delay that earlier failures caused.
            Next::After(wait) if ended.result == PassResult::OverBudget => queue.add_after(&key, wait),
            Next::After(wait) => {
                queue.succeeded(&key);
                queue.add_after(&key, wait);
                // A waiting pass may have sent no request, so it does not show whether the operator has the rights.
                if ended.result != PassResult::Waiting {
                    context.access.watch.was_let_in(&key);
                }
            }
            Next::Denied => {
                context.runner.metrics.retry(&key.of);
                queue.retry(&key, None);
                if context.access.watch.was_denied(&key, rights) {
                    queue.add_after(&key, RIGHTS_PROBE_INTERVAL);
                }
            }
            Next::Retry(at_least) => {
                context.runner.metrics.retry(&key.of);
                queue.retry(&key, at_least);
            }
        }
        drop(lease);
    }
}

/// Writes into the object's status why a pass did not finish. If this panics too, logs an error.
async fn report(context: &Context, key: &ObjectKey, why: PassFailed) {
    let Context { access, declared_fields, memories, .. } = context;
    let reported = publish_failure(access, declared_fields, memories, key, why);
    if AssertUnwindSafe(reported).catch_unwind().await.is_err() {
        tracing::error!(object = %key, "the report of an unfinished pass panicked too");
    }
}
