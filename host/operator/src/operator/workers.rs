//! Workers: take a key, make a pass, say when to look again. Nothing that a pass does ends a worker.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt as _;
use tokio::time::Instant;
use tracing::Instrument as _;

use crate::{
    metrics::PassResult,
    queue::Queue,
    reconcile::{Context, Ended, Next},
};

/// Makes passes until the queue is closed.
pub(super) async fn work(context: Arc<Context>, queue: Queue, deadline: Duration) {
    while let Some(lease) = queue.next().await {
        let key = lease.key().clone();
        let span = tracing::info_span!("pass", kind = key.of.kind, namespace = key.namespace, name = key.name);
        let started = Instant::now();
        let pass = AssertUnwindSafe(context.pass(&key)).catch_unwind();
        let ended = match tokio::time::timeout(deadline, pass).instrument(span).await {
            Ok(Ok(ended)) => ended,
            Ok(Err(panic)) => {
                let reason = panic.downcast_ref::<String>().map(String::as_str);
                let reason = reason.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
                tracing::error!(object = %key, reason, "a pass panicked");
                Ended { result: PassResult::Failed, next: Next::Retry(None) }
            }
            Err(_) => {
                tracing::warn!(object = %key, seconds = deadline.as_secs(), "a pass took too long");
                Ended { result: PassResult::Retried, next: Next::Retry(None) }
            }
        };
        context.metrics.pass(&key.of, ended.result, started.elapsed());
        match ended.next {
            Next::Never => queue.succeeded(&key),
            Next::After(wait) => {
                queue.succeeded(&key);
                queue.add_after(&key, wait);
            }
            Next::Retry(at_least) => {
                context.metrics.retry(&key.of);
                let wait = queue.retry(&key);
                // A later time of its own is kept: the earlier of two counts, so it is set first.
                if let Some(at_least) = at_least.filter(|at_least| *at_least > wait) {
                    queue.add_after(&key, at_least);
                }
            }
        }
        drop(lease);
    }
}
