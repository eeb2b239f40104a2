//! The fence stops the writes of a process that must no longer write.
//!
//! The fence is open until a certain time on this machine's monotonic clock. Each renewal of the Lease extends this
//! time. If a process was suspended or cut off from the network, the fence stops its next write, even if the process
//! did not notice the interruption.

use std::sync::Arc;

use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FenceState {
    /// The fence is always open, because no other process writes, or because this process runs without a Lease.
    Open,
    /// The fence is open until this time.
    Until(Instant),
    /// The fence is closed forever.
    Closed,
}

/// Shows whether this process is allowed to write now. All clones share the same state.
#[derive(Debug, Clone)]
pub struct Fence(Arc<watch::Sender<FenceState>>);

impl Fence {
    /// Creates a fence that never closes, for a process without a Lease.
    pub fn open() -> Self {
        Self(Arc::new(watch::Sender::new(FenceState::Open)))
    }

    /// Creates a closed fence, for a process that has no Lease yet.
    pub fn closed_at_first() -> Self {
        Self(Arc::new(watch::Sender::new(FenceState::Until(Instant::now()))))
    }

    /// Keeps the fence open until this time. Does nothing after a call of [`shut`](Self::shut).
    pub(super) fn open_until(&self, moment: Instant) {
        self.0.send_if_modified(|state| {
            let opens = *state != FenceState::Closed;
            if opens {
                *state = FenceState::Until(moment);
            }
            opens
        });
    }

    /// Closes the fence forever.
    pub fn shut(&self) {
        self.0.send_replace(FenceState::Closed);
    }

    /// Returns whether the process is allowed to send a write.
    pub fn is_open(&self) -> bool {
        match *self.0.borrow() {
            FenceState::Open => true,
            FenceState::Until(moment) => Instant::now() < moment,
            FenceState::Closed => false,
        }
    }

    /// Waits until the fence is closed.
    pub async fn closed(&self) {
        let mut states = self.0.subscribe();
        loop {
            let state = *states.borrow_and_update();
            let expired = async {
                match state {
                    FenceState::Open => std::future::pending().await,
                    FenceState::Until(moment) => sleep_until(moment).await,
                    FenceState::Closed => {}
                }
            };
            tokio::select! {
                biased;
                // This handle keeps the sender alive, so `changed` returns no error.
                _moved = states.changed() => {}
                () = expired => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_fence_closes_by_itself_without_renewal() {
        let fence = Fence::closed_at_first();
        assert!(!fence.is_open());
        let start = Instant::now();
        fence.open_until(start + Duration::from_secs(10));
        let waiting = tokio::spawn({
            let fence = fence.clone();
            async move { fence.closed().await }
        });
        tokio::time::advance(Duration::from_secs(9)).await;
        assert!(fence.is_open());
        fence.open_until(start + Duration::from_secs(15));
        tokio::time::advance(Duration::from_secs(3)).await;
        assert!(fence.is_open() && !waiting.is_finished());
        waiting.await.expect("it returns");
        assert_eq!(start.elapsed().as_secs(), 15);
        assert!(!fence.is_open());
    }

    #[tokio::test(start_paused = true)]
    async fn a_fence_that_was_shut_stays_shut() {
        let fence = Fence::open();
        assert!(fence.is_open());
        fence.shut();
        fence.closed().await;
        fence.open_until(Instant::now() + Duration::from_secs(10));
        assert!(!fence.is_open());
    }
}
