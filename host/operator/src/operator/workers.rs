//! Workers take an object from the queue, run a pass, and queue the object again. A panic or an error in a pass does
//! not end a worker.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt as _;
use tokio::time::Instant;
use tracing::Instrument as _;

use crate::{
    metrics::PassResult,
    queue::Queue,
    reconcile::{Context, Ended, Halt, Next, unless_given_up},
    watch::ObjectKey,
};

/// The maximum delay of the one object that retries for all objects with missing rights.
const SCOUT: Duration = Duration::from_secs(30);

/// Runs passes until the queue is closed.
pub(super) async fn work(context: Arc<Context>, queue: Queue, deadline: Duration) {
    while let Some(lease) = queue.next().await {
        let key = lease.key().clone();
        let (kind, namespace, name) = (&*key.of.kind, &*key.namespace, &*key.name);
        let span = tracing::info_span!("pass", kind, namespace, name, result = tracing::field::Empty);
        let (started, rights) = (Instant::now(), context.watch.rights());
        let pass = AssertUnwindSafe(unless_given_up(context.pass(&key))).catch_unwind();
        let ended = match tokio::time::timeout(deadline, pass).instrument(span.clone()).await {
            Ok(Ok(Some(ended))) => ended,
            Ok(Ok(None)) => {
                tracing::debug!(object = %key, "the pass is left to the next operator");
                continue;
            }
            Ok(Err(panic)) => {
                let reason = panic.downcast_ref::<String>().map(String::as_str);
                let reason = reason.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
                tracing::error!(object = %key, reason, "a pass panicked");
                tell(&context, &key, &Halt::Panicked(reason.to_owned())).await;
                Ended { result: PassResult::Failed, next: Next::Retry(None) }
            }
            Err(_) => {
                tracing::warn!(object = %key, seconds = deadline.as_secs(), "a pass took too long");
                tell(&context, &key, &Halt::Late(deadline)).await;
                Ended { result: PassResult::Retried, next: Next::Retry(None) }
            }
        };
        span.record("result", ended.result.label());
        context.metrics.pass(&key.of, ended.result, started.elapsed());
        match ended.next {
            Next::Never => {
                queue.succeeded(&key);
                context.watch.was_let_in(&key);
            }
            Next::After(wait) => {
                queue.succeeded(&key);
                queue.add_after(&key, wait);
                // A waiting pass sent no request to the API server, so it does not show that the rights are there.
                if ended.result != PassResult::Waiting {
                    context.watch.was_let_in(&key);
                }
            }
            Next::Denied => {
                context.metrics.retry(&key.of);
                queue.retry(&key, None);
                if context.watch.was_denied(&key, rights) {
                    queue.add_after(&key, SCOUT);
                }
            }
            Next::Retry(at_least) => {
                context.metrics.retry(&key.of);
                queue.retry(&key, at_least);
            }
        }
        drop(lease);
    }
}

/// Writes the reason for an unfinished pass into the object's status. If this panics too, the pass is tried again.
async fn tell(context: &Context, key: &ObjectKey, halt: &Halt) {
    if AssertUnwindSafe(context.tell_halt(key, halt)).catch_unwind().await.is_err() {
        tracing::error!(object = %key, "telling of a pass that came to no end panicked too");
    }
}
