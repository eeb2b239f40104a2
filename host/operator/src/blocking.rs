//! Runs CPU-bound work outside the threads of the async runtime.

/// Runs the work on a blocking thread. If the work panics, the caller panics, too.
pub(crate) async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(stopped) => match stopped.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is shutting down, and will drop this task too.
            Err(_) => std::future::pending().await,
        },
    }
}
