//! Runs CPU-bound work that no pass waits for, such as previews and recorded cases. Separate threads do this work. They
//! have a lower priority than all other threads of the process, so the kernel lets passes run first.
//!
//! If a CPU limit of the container is used up, the kernel stops all threads, whatever their priority. So while `pauses`
//! returns true, a thread of low priority also pauses after each piece of work.

use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, Receiver, SendError, Sender},
    },
    thread,
    time::{Duration, Instant},
};

use tokio::sync::oneshot;

/// The number by which the niceness of the threads is higher than that of the process. On a busy processor, a thread of
/// a pass gets nine times as much time.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;
/// The longest pause after a piece of work.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

type Work = Box<dyn FnOnce() + Send>;

/// Threads of low priority. All clones share the same threads. The threads end with the last clone.
#[derive(Debug, Clone)]
pub(crate) struct LowPriority(Sender<Work>);

impl LowPriority {
    /// Starts this many threads. After each piece of work for which `pauses` returns true, a thread pauses for as long
    /// as the work took. `pauses` gets the time at which the work began.
    pub(crate) fn start(threads: usize, pauses: impl Fn(Instant) -> bool + Clone + Send + 'static) -> Self {
        let (sender, queue) = mpsc::channel::<Work>();
        let queue = Arc::new(Mutex::new(queue));
        for _ in 0..threads {
            let (queue, pauses) = (Arc::clone(&queue), pauses.clone());
            // If the process can start none of the threads, `spawn` uses a thread of the runtime instead.
            let thread = thread::Builder::new().name("low-priority".to_owned());
            let _unstarted = thread.spawn(move || follow(&queue, &pauses));
        }
        Self(sender)
    }

    /// Runs the work, and waits until it ends. If the work panics, the caller panics, too. If the caller stops waiting
    /// before the work begins, the work does not run.
    pub(crate) async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let (sender, receiver) = oneshot::channel();
        self.spawn(move || {
            if !sender.is_closed() {
                let _dropped = sender.send(catch_unwind(AssertUnwindSafe(work)));
            }
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
fn follow(queue: &Mutex<Receiver<Work>>, pauses: &dyn Fn(Instant) -> bool) {
    lower();
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
    while let Ok(work) = next() {
        let began = Instant::now();
        // A panic ends only this piece of work. The panic hook has already reported the panic.
        let _panic = catch_unwind(AssertUnwindSafe(work));
        if pauses(began) {
            thread::sleep(began.elapsed().min(LONGEST_PAUSE));
        }
    }
}

/// Lowers the priority of this thread. On Linux, the niceness belongs to a thread. On other systems, it belongs to the
/// whole process, so this function does nothing there.
fn lower() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::nice(NICENESS) {
        tracing::debug!(%error, "work of low priority runs with the priority of passes");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread() -> LowPriority {
        LowPriority::start(1, |_| false)
    }

    #[tokio::test]
    async fn work_runs_in_order_and_a_panic_ends_only_its_own_work() {
        let low = thread();
        let (sender, receiver) = mpsc::channel();
        low.spawn(|| panic!("a test"));
        low.spawn(move || sender.send(1).unwrap());
        assert_eq!(low.run(move || receiver.try_recv().unwrap()).await, 1);
        let panics = tokio::spawn(async move { low.run(|| panic!("a test")).await });
        assert!(panics.await.unwrap_err().is_panic());
    }

    #[tokio::test]
    async fn work_without_a_caller_does_not_begin() {
        let low = thread();
        let (begin, begins) = mpsc::channel::<()>();
        low.spawn(move || begins.recv().unwrap());
        let mut abandoned = Box::pin(low.run(|| panic!("nobody waits for this work")));
        assert!(futures_util::poll!(&mut abandoned).is_pending());
        drop(abandoned);
        begin.send(()).unwrap();
        assert_eq!(low.run(|| 1).await, 1);
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn only_the_thread_itself_has_a_low_priority() {
        let niceness = || rustix::process::getpriority_process(None).unwrap();
        let before = niceness();
        assert_eq!(thread().run(niceness).await, (before + NICENESS).min(19));
        assert_eq!(niceness(), before);
    }
}
