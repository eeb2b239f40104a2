//! Work that takes a processor, off the threads that everything else runs on.

/// Does it. A panic in it goes on here.
pub(crate) async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(stopped) => match stopped.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime goes down, and this task with it.
            Err(_) => std::future::pending().await,
        },
    }
}
