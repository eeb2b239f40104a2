//! Runs CPU-bound work that no pass waits for, such as previews and recorded cases. Threads of their own do this work.
//! They have a lower priority than all other threads of the process, so the kernel gives them only the time that passes
//! leave. If passes use all processors for long, these threads still get a little time.

use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, Receiver, SendError, Sender},
    },
    thread,
};

use tokio::sync::oneshot;

/// The nice value of the threads. According to the kernel's weights, a thread of a pass gets 28 times as much time.
#[cfg(target_os = "linux")]
const NICE: i32 = 15;

type Work = Box<dyn FnOnce() + Send>;

/// The threads of low priority. All clones share the same threads. The threads end with the last clone.
#[derive(Debug, Clone)]
pub(crate) struct LowPriority(Sender<Work>);

impl LowPriority {
    /// Starts this many threads.
    pub(crate) fn start(threads: usize) -> Self {
        let (sender, queue) = mpsc::channel::<Work>();
        let queue = Arc::new(Mutex::new(queue));
        for _ in 0..threads {
            let queue = Arc::clone(&queue);
            // If the process can start none of the threads, `spawn` uses a thread of the runtime instead.
            let _unstarted = thread::Builder::new().name("low-priority".to_owned()).spawn(move || follow(&queue));
        }
        Self(sender)
    }

    /// Runs the work, and waits until it ends. If the work panics, the caller panics, too.
    pub(crate) async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let (sender, receiver) = oneshot::channel();
        self.spawn(move || {
            let _dropped = sender.send(catch_unwind(AssertUnwindSafe(work)));
        });
        match receiver.await {
            Ok(Ok(done)) => done,
            Ok(Err(panic)) => resume_unwind(panic),
            // The runtime is shutting down, and will drop this task too.
            Err(_) => std::future::pending().await,
        }
    }

    /// Starts the work, and does not wait until it ends.
    pub(crate) fn spawn(&self, work: impl FnOnce() + Send + 'static) {
        if let Err(SendError(work)) = self.0.send(Box::new(work)) {
            drop(tokio::task::spawn_blocking(work));
        }
    }
}

/// Does the work of the queue until no sender exists any more.
fn follow(queue: &Mutex<Receiver<Work>>) {
    lower();
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
    while let Ok(work) = next() {
        // A panic ends only this piece of work. The panic hook has already reported the panic.
        let _panic = catch_unwind(AssertUnwindSafe(work));
    }
}

/// Lowers the priority of this thread. On Linux, a nice value belongs to a thread. On other systems, it belongs to the
/// whole process, so this function does nothing there.
fn lower() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::setpriority_process(None, NICE) {
        tracing::debug!(%error, "work of low priority runs with the priority of passes");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_runs_in_order_and_a_panic_ends_only_its_own_work() {
        let low = LowPriority::start(1);
        let (sender, receiver) = mpsc::channel();
        low.spawn(|| panic!("a test"));
        low.spawn(move || sender.send(1).unwrap());
        assert_eq!(low.run(move || receiver.try_recv().unwrap()).await, 1);
        let panics = tokio::spawn(async move { low.run(|| panic!("a test")).await });
        assert!(panics.await.unwrap_err().is_panic());
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn only_the_thread_itself_has_a_low_priority() {
        let nice = || rustix::process::getpriority_process(None).unwrap();
        let before = nice();
        assert_eq!(LowPriority::start(1).run(nice).await, (before + NICE).min(19).max(NICE));
        assert_eq!(nice(), before);
    }
}
