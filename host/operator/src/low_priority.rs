//! Runs CPU-bound work that no pass waits for, such as previews and recorded cases. Separate threads do this work.
//! These threads have a lower priority than all other threads of the process, so the kernel lets passes run first.
//!
//! A priority is not enough: if the container has used up its CPU limit, the kernel stops all threads. A thread of low
//! priority also delays passes by the locks and caches that it shares with them. So while passes need the processors,
//! only one of these threads works at a time, and it pauses after each piece of work.

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

/// The niceness to add if the kernel refuses the scheduling class `SCHED_IDLE`. With this niceness, a thread of a pass
/// gets nine times as much time on a busy processor.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;
/// The longest pause after a piece of work.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

type Work = Box<dyn FnOnce() + Send>;

/// Threads of low priority. All clones share the same threads. The threads end with the last clone.
#[derive(Debug, Clone)]
pub(crate) struct LowPriority(Sender<Work>);

impl LowPriority {
    /// Starts this many threads. `is_busy` returns whether passes need the processors. While passes need them, only one
    /// thread works at a time. It then pauses for the duration of its work, at most for [`LONGEST_PAUSE`].
    pub(crate) fn start(threads: usize, is_busy: impl Fn() -> bool + Clone + Send + 'static) -> Self {
        let (sender, queue) = mpsc::channel::<Work>();
        let queue = Arc::new(Mutex::new(queue));
        for _ in 0..threads {
            let (queue, is_busy) = (Arc::clone(&queue), is_busy.clone());
            // If the process can start none of the threads, `spawn` uses a thread of the runtime instead.
            let thread = thread::Builder::new().name("low-priority".to_owned());
            let _unstarted = thread.spawn(move || follow(&queue, &is_busy));
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

/// Does the work in the queue until the last sender is dropped.
fn follow(queue: &Mutex<Receiver<Work>>, is_busy: &dyn Fn() -> bool) {
    lower();
    loop {
        let queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
        let Ok(work) = queue.recv() else { return };
        // While passes need the processors, this thread keeps the queue locked, so no other thread can take work from
        // it.
        let _queue = is_busy().then_some(queue);
        let began = Instant::now();
        // A panic ends only this piece of work. The panic hook has already reported the panic.
        let _panic = catch_unwind(AssertUnwindSafe(work));
        if is_busy() {
            thread::sleep(began.elapsed().min(LONGEST_PAUSE));
        }
    }
}

/// Lowers the priority of this thread.
///
/// On Linux, the thread gets the scheduling class `SCHED_IDLE`: the kernel stops this thread as soon as a thread of a
/// pass can run. With a niceness alone, the kernel would let this thread first use up its time slice of some
/// milliseconds. If the kernel refuses this class, the thread gets the niceness. On other systems, this function does
/// nothing, because there a niceness belongs to the whole process.
fn lower() {
    #[cfg(target_os = "linux")]
    {
        use thread_priority::{
            NormalThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy, set_thread_priority_and_policy,
            thread_native_id,
        };

        let idle = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
        let is_idle = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, idle);
        if is_idle.is_err()
            && let Err(error) = rustix::process::nice(NICENESS)
        {
            tracing::debug!(%error, "work of low priority runs with the priority of passes");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn thread() -> LowPriority {
        LowPriority::start(1, || false)
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

    #[tokio::test]
    async fn while_passes_run_the_threads_work_one_after_the_other() {
        let low = LowPriority::start(2, || true);
        let working = Arc::new(AtomicUsize::new(0));
        let work = || {
            let working = Arc::clone(&working);
            low.run(move || {
                let others = working.fetch_add(1, Ordering::SeqCst);
                thread::sleep(Duration::from_millis(1));
                working.fetch_sub(1, Ordering::SeqCst);
                others
            })
        };
        let others = futures_util::future::join_all((0..10).map(|_| work())).await;
        assert_eq!(others, [0; 10]);
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn only_the_thread_itself_has_a_low_priority() {
        use thread_priority::{NormalThreadSchedulePolicy, ThreadSchedulePolicy, thread_schedule_policy};

        let priority = || (thread_schedule_policy().unwrap(), rustix::process::getpriority_process(None).unwrap());
        let before = priority();
        let (policy, niceness) = thread().run(priority).await;
        let is_idle = policy == ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
        assert!(is_idle || niceness == (before.1 + NICENESS).min(19), "{policy:?} {niceness}");
        assert_eq!(priority(), before);
    }
}
