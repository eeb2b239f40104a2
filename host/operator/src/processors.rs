//! Limits how many policies run at the same time: at most one for each processor. Tenants' policies get at most half of
//! the processors.

use std::{sync::Arc, time::Duration};

use kaos_policy::engine::Engine;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::blocking::off_thread;

/// The number of sandboxes that one pass has open at the same time: one for the policy, and one for the current
/// overlay.
const OPEN: usize = 2;

/// The maximum total time for which low-priority work, such as one preview, waits for processors that no pass needs.
const PATIENCE: Duration = Duration::from_secs(5);
/// The interval at which work of low priority looks for a free processor.
const LOOK: Duration = Duration::from_millis(5);

/// The threads on which policies run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Compute {
    /// Policies run on separate threads. The number of threads that run policies at the same time is at most the number
    /// of processors.
    #[default]
    Pool,
    /// Policies run in the task of the pass, so that every run of a simulation has the same result.
    Inline,
}

/// The processors of this machine. All clones share the same processors.
#[derive(Clone)]
pub(crate) struct Processors {
    compute: Compute,
    all: Arc<Semaphore>,
    /// The processors that tenants' policies can use at the same time.
    tenants: Arc<Semaphore>,
    /// The number of free processors that work of low priority leaves to passes.
    reserve: usize,
}

/// The time for which low-priority work can still wait for a processor that no pass needs. Several runs share this
/// time.
#[derive(Debug)]
pub(crate) struct Patience(Duration);

impl Default for Patience {
    fn default() -> Self {
        Self(PATIENCE)
    }
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

    /// Uses this many processors, up to the number for which the engine has enough sandboxes. With more processors,
    /// passes would fail to open a sandbox.
    fn new(compute: Compute, processors: usize) -> Self {
        let processors = processors.clamp(1, Engine::SANDBOXES / OPEN);
        let tenants = (processors / 2).max(1);
        let [all, tenants] = [processors, tenants].map(|permits| Arc::new(Semaphore::new(permits)));
        Self { compute, all, tenants, reserve: usize::from(processors > 1) }
    }

    /// Runs policies or other CPU-bound work. Work with `is_local` is for a tenant's policies, and leaves processors
    /// free for the owner's policies.
    ///
    /// The work keeps its processor until the work ends, even if the caller stops waiting for the work.
    pub(crate) async fn run<T: Send + 'static>(&self, is_local: bool, work: impl FnOnce() -> T + Send + 'static) -> T {
        if self.compute == Compute::Inline {
            return work();
        }
        let permit = self.permit(is_local).await;
        off_thread(move || {
            let done = work();
            drop(permit);
            done
        })
        .await
    }

    /// Starts CPU-bound work with low priority. Does not wait until the work ends.
    pub(crate) fn spawn_when_free(&self, is_local: bool, work: impl FnOnce() + Send + 'static) {
        if self.compute == Compute::Inline {
            return work();
        }
        let processors = self.clone();
        tokio::spawn(async move { processors.run_when_free(is_local, &mut Patience::default(), work).await });
    }

    /// Runs policies with low priority: waits for a free processor that no pass needs. When the time in [`Patience`] is
    /// used up, waits in the order of arrival, like a pass. So the work ends even if passes always need all processors.
    /// Only in this case, work with `is_local` takes a processor from the share of tenants' policies.
    pub(crate) async fn run_when_free<T: Send + 'static>(
        &self,
        is_local: bool,
        Patience(left): &mut Patience,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        if self.compute == Compute::Inline {
            tokio::task::yield_now().await;
            return work();
        }
        let began = tokio::time::Instant::now();
        let permit = match tokio::time::timeout(*left, self.free()).await {
            Ok(permit) => permit,
            Err(_) => self.permit(is_local).await,
        };
        let started = tokio::time::Instant::now();
        *left = left.saturating_sub(started - began);
        let done = off_thread(move || {
            let done = work();
            drop(permit);
            done
        })
        .await;
        if self.reserve == 0 {
            // With a single processor, no other processor can stay free for passes. So leave the processor to passes
            // for half of the time.
            tokio::time::sleep(started.elapsed()).await;
        }
        done
    }

    async fn free(&self) -> Permit {
        loop {
            if self.all.available_permits() > self.reserve
                && let Ok(processor) = Arc::clone(&self.all).try_acquire_owned()
            {
                return Permit { _share: None, _processor: Some(processor) };
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Waits for a processor, in the order of arrival.
    pub(crate) async fn permit(&self, is_local: bool) -> Permit {
        if self.compute == Compute::Inline {
            return Permit { _share: None, _processor: None };
        }
        // Acquiring never fails, because the semaphores are never closed.
        let share = if is_local { Arc::clone(&self.tenants).acquire_owned().await.ok() } else { None };
        Permit { _share: share, _processor: Arc::clone(&self.all).acquire_owned().await.ok() }
    }
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

    #[tokio::test(start_paused = true)]
    async fn work_of_low_priority_leaves_the_last_processor_to_passes_for_a_while() {
        let processors = Processors::new(Compute::Pool, 2);
        let mut patience = Patience::default();
        assert_eq!(processors.run_when_free(false, &mut patience, || 1).await, 1);
        let pass = processors.permit(false).await;
        let began = tokio::time::Instant::now();
        assert_eq!(processors.run_when_free(false, &mut patience, || 2).await, 2);
        assert!(began.elapsed() >= PATIENCE, "{:?}", began.elapsed());
        let began = tokio::time::Instant::now();
        assert_eq!(processors.run_when_free(false, &mut patience, || 3).await, 3);
        assert!(began.elapsed() < LOOK, "the patience is used up for the whole preview: {:?}", began.elapsed());
        drop(pass);
    }

    #[test]
    fn the_sandboxes_suffice_for_any_number_of_processors() {
        for many in [1, 24, 1000] {
            let processors = Processors::new(Compute::Pool, many);
            assert!((1..=Engine::SANDBOXES / OPEN).contains(&processors.all.available_permits()), "{many}");
        }
    }
}
