//! Limits how many policies run for passes at the same time: at most one for each processor. Tenants' policies get at
//! most half of the processors. Work of low priority has threads of its own ([`crate::low_priority`]).

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use kaos_policy::engine::Engine;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{blocking::off_thread, low_priority::LowPriority};

/// The number of sandboxes that one pass has open at the same time: one for the policy, and one for the current
/// overlay. A preview of one object also has at most two open sandboxes.
const OPEN: usize = 2;
/// The maximum number of threads of low priority.
const LOW_PRIORITY: usize = 4;
/// The time after the start of a pass for which the threads of low priority assume that the pass still runs. Otherwise,
/// all of them would begin to work in each short gap between two passes.
const RECENT: Duration = Duration::from_millis(100);

/// The threads on which policies run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Compute {
    /// Policies run on separate threads. At most one thread for each processor runs policies for passes at the same
    /// time.
    #[default]
    Pool,
    /// Policies run in the task of the pass, so that every run of a simulation has the same result.
    Inline,
}

/// The processors of this machine. All clones share the same processors.
#[derive(Clone)]
pub(crate) struct Processors {
    all: Arc<Semaphore>,
    /// One permit for each processor that tenants' policies may use at the same time.
    tenants: Arc<Semaphore>,
    /// The threads of low priority; `None` with [`Compute::Inline`].
    low_priority: Option<Arc<LowPriorityThreads>>,
    /// The last time at which work for a pass began.
    last: Arc<Mutex<Option<Instant>>>,
}

struct LowPriorityThreads {
    /// The threads that run policies.
    policies: LowPriority,
    /// The thread that writes recorded cases. Previews must not delay this thread, because only a few cases can wait
    /// for it.
    cases: LowPriority,
    /// The number of threads in `policies`.
    number: usize,
    /// One permit for each thread in `policies` that tenants' policies may use at the same time.
    tenants: Arc<Semaphore>,
}

/// Permission to use a processor, until this value is dropped.
pub(crate) struct Permit {
    _share: Option<OwnedSemaphorePermit>,
    _processor: Option<OwnedSemaphorePermit>,
}

impl Processors {
    /// Uses all processors of this machine.
    pub(crate) fn of_this_machine(compute: Compute) -> Self {
        Self::new(compute, std::thread::available_parallelism().map_or(1, std::num::NonZero::get))
    }

    /// Uses this many processors, but no more than the engine has sandboxes for. Otherwise, passes would fail to open a
    /// sandbox.
    fn new(compute: Compute, processors: usize) -> Self {
        let processors = processors.clamp(1, Engine::SANDBOXES / OPEN - LOW_PRIORITY);
        let tenants = (processors / 2).max(1);
        let [all, tenants] = [processors, tenants].map(|permits| Arc::new(Semaphore::new(permits)));
        let last = Arc::default();
        let low_priority =
            (compute == Compute::Pool).then(|| Arc::new(LowPriorityThreads::start(processors, &all, &last)));
        Self { all, tenants, low_priority, last }
    }

    /// Runs policies or other CPU-bound work. If `is_local` is set, the work is for a tenant's policies, and waits so
    /// that processors stay free for the owner's policies.
    ///
    /// The work keeps its processor until the work ends, even if the caller stops waiting for the work.
    pub(crate) async fn run<T: Send + 'static>(&self, is_local: bool, work: impl FnOnce() -> T + Send + 'static) -> T {
        if self.low_priority.is_none() {
            return work();
        }
        let permit = self.permit(is_local).await;
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        off_thread(move || {
            let done = work();
            drop(permit);
            done
        })
        .await
    }

    /// Writes a recorded case with low priority. Does not wait until the work ends.
    pub(crate) fn spawn_case(&self, work: impl FnOnce() + Send + 'static) {
        match &self.low_priority {
            Some(threads) => threads.cases.spawn(work),
            None => work(),
        }
    }

    /// Returns the number of threads of low priority that run policies.
    pub(crate) fn low_priority_threads(&self) -> usize {
        self.low_priority.as_ref().map_or(1, |threads| threads.number)
    }

    /// Runs policies with low priority. If `is_local` is set, the work is for a tenant's policies, and waits so that
    /// threads stay free for the owner's policies.
    pub(crate) async fn run_low_priority<T: Send + 'static>(
        &self,
        is_local: bool,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        let Some(threads) = &self.low_priority else {
            tokio::task::yield_now().await;
            return work();
        };
        // `acquire_owned` never fails, because the semaphore is never closed.
        let share = if is_local { Arc::clone(&threads.tenants).acquire_owned().await.ok() } else { None };
        let work = move || {
            let done = work();
            drop(share);
            done
        };
        threads.policies.run(work).await
    }

    /// Waits for a free processor. The callers get processors in the order of their calls.
    pub(crate) async fn permit(&self, is_local: bool) -> Permit {
        if self.low_priority.is_none() {
            return Permit { _share: None, _processor: None };
        }
        // `acquire_owned` never fails, because the semaphores are never closed.
        let share = if is_local { Arc::clone(&self.tenants).acquire_owned().await.ok() } else { None };
        Permit { _share: share, _processor: Arc::clone(&self.all).acquire_owned().await.ok() }
    }
}

impl LowPriorityThreads {
    /// Starts the threads for this many processors.
    fn start(processors: usize, all: &Arc<Semaphore>, last: &Arc<Mutex<Option<Instant>>>) -> Self {
        let (all, last) = (Arc::clone(all), Arc::clone(last));
        let is_busy = move || {
            let last = *last.lock().unwrap_or_else(PoisonError::into_inner);
            is_busy(processors, all.available_permits(), last.map(|last| last.elapsed()))
        };
        let number = processors.min(LOW_PRIORITY);
        Self {
            policies: LowPriority::start(number, is_busy.clone()),
            cases: LowPriority::start(1, is_busy),
            number,
            tenants: Arc::new(Semaphore::new((number / 2).max(1))),
        }
    }
}

/// Returns whether passes need the processors so much that the threads of low priority must pause. `free` is the number
/// of processors without a pass, and `since` is the time since the start of the last pass.
///
/// A single processor always counts as busy: it may be the CPU limit of the container, which all threads share.
fn is_busy(processors: usize, free: usize, since: Option<Duration>) -> bool {
    let is_recent = since.is_some_and(|since| since < RECENT);
    let used = processors.saturating_sub(free).max(usize::from(is_recent));
    processors == 1 || used + processors.min(LOW_PRIORITY) > processors
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn abandoned_work_keeps_its_processor_until_it_ends() {
        let processors = Processors::new(Compute::Pool, 2);
        let (end, ends) = mpsc::channel::<()>();
        let (begin, begins) = tokio::sync::oneshot::channel();
        let pass = processors.run(true, move || {
            let _ = begin.send(());
            ends.recv()
        });
        tokio::select! {
            _ = pass => panic!("it ended"),
            begun = begins => begun.unwrap(),
        }
        assert_eq!((processors.all.available_permits(), processors.tenants.available_permits()), (1, 0));
        end.send(()).unwrap();
        drop(tokio::time::timeout(Duration::from_mins(1), processors.permit(true)).await.unwrap());
        drop(processors.all.acquire_many(2).await.unwrap());
    }

    #[tokio::test]
    async fn work_of_low_priority_needs_no_processor_of_passes() {
        let processors = Processors::new(Compute::Pool, 1);
        let _pass = processors.permit(false).await;
        assert_eq!(processors.run_low_priority(true, || 1).await, 1);
    }

    #[test]
    fn the_sandboxes_suffice_for_any_number_of_processors() {
        for many in [1, 24, 1000] {
            let processors = Processors::new(Compute::Pool, many);
            let all = processors.all.available_permits() + processors.low_priority_threads();
            assert!((2..=Engine::SANDBOXES / OPEN).contains(&all), "{many}");
        }
    }

    #[test]
    fn passes_need_the_processors_if_too_few_are_left_for_the_threads_of_low_priority() {
        let (recent, old) = (Some(Duration::from_millis(1)), Some(RECENT));
        for (processors, free, since, is) in [
            (1, 1, None, true),
            (2, 2, None, false),
            (2, 2, old, false),
            (2, 2, recent, true),
            (2, 1, old, true),
            (32, 31, recent, false),
            (32, 4, recent, false),
            (32, 3, old, true),
        ] {
            assert_eq!(is_busy(processors, free, since), is, "{processors} {free} {since:?}");
        }
    }
}
