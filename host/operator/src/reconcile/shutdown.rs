//! Ends passes during a shutdown. A pass that writes may finish, but a pass that waits for a computation is aborted.
//!
//! A slow policy, or a long wait for a processor, must not delay the shutdown. The answer of an aborted pass is not
//! needed, because the next process asks the policy again.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

/// The time that a computation has to finish after the shutdown has begun.
const COMPUTE_GRACE: Duration = Duration::from_millis(500);

tokio::task_local! {
    /// A token to abort the pass that runs in this task.
    static GIVEN_UP: CancellationToken;
}

/// Runs a pass. Returns `None` if the pass is aborted.
pub(crate) async fn unless_given_up<T>(pass: impl Future<Output = T>) -> Option<T> {
    let given_up = CancellationToken::new();
    tokio::select! {
        biased;
        made = GIVEN_UP.scope(given_up.clone(), pass) => Some(made),
        () = given_up.cancelled() => None,
    }
}

/// Waits for a computation. If the operator shuts down before the computation ends, aborts the pass that waits for it.
pub(super) async fn computed<T>(stopping: &CancellationToken, computing: impl Future<Output = T>) -> T {
    let ends = async {
        stopping.cancelled().await;
        tokio::time::sleep(COMPUTE_GRACE).await;
    };
    let mut computing = std::pin::pin!(computing);
    tokio::select! {
        biased;
        computed = &mut computing => return computed,
        () = ends => {}
    }
    // If the caller is not a pass, do not abort it, but wait for the result.
    let is_pass = GIVEN_UP.try_with(CancellationToken::cancel).is_ok();
    if is_pass { std::future::pending().await } else { computing.await }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::time::{Instant, sleep};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_pass_that_computes_when_the_operator_ends_is_given_up_soon() {
        let stopping = CancellationToken::new();
        let pass = unless_given_up(computed(&stopping, pending::<()>()));
        let stop = async {
            sleep(Duration::from_mins(1)).await;
            stopping.cancel();
        };
        let began = Instant::now();
        let (made, ()) = tokio::join!(pass, stop);
        assert_eq!((made, began.elapsed()), (None, Duration::from_mins(1) + COMPUTE_GRACE));
    }

    #[tokio::test(start_paused = true)]
    async fn a_pass_that_writes_or_computes_quickly_is_finished() {
        let stopping = CancellationToken::new();
        stopping.cancel();
        let pass = async {
            let answer = computed(&stopping, async { 7 }).await;
            sleep(Duration::from_secs(5)).await;
            answer
        };
        assert_eq!(unless_given_up(pass).await, Some(7));
    }

    #[tokio::test(start_paused = true)]
    async fn computations_outside_of_passes_are_finished() {
        let stopping = CancellationToken::new();
        stopping.cancel();
        computed(&stopping, sleep(Duration::from_secs(5))).await;
    }
}
