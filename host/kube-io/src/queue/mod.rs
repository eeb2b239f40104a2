//! The work queue decides which object is next. It never gives out the same object twice at once.
//!
//! Keys wait in three lines. Fresh events come first. Keys from a cause that concerns many objects wait in the other
//! two, and every few turns one of them comes first. One line holds the keys of a start or of an object that many need,
//! and runs at full speed. The other one holds the keys of a policy swap, and runs at a limited pace. If a key is added
//! during its pass, it comes again afterwards. In each line the namespaces take turns, and each namespace has a maximum
//! number of passes at once. Each key has its own backoff. The callers of [`Queue::next`] decide how many passes run at
//! once.

mod fair_queue;
mod state;
#[cfg(test)]
mod tests;

use std::{
    fmt,
    pin::pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use fastrand::Rng;
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

pub use crate::{backoff::Backoff, urgency::Urgency};

use state::{Next, QueueState};

use crate::{locking::lock, object_key::ObjectKey};

/// The queue. A clone is the same queue.
#[derive(Clone)]
pub struct Queue(Arc<Inner>);

struct Inner {
    state: Mutex<QueueState>,
    rng: Mutex<Rng>,
    backoff: Backoff,
    changed: Notify,
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("depth", &self.depth()).finish_non_exhaustive()
    }
}

impl Queue {
    /// Creates an empty queue. `pace` is the minimum time between two paced keys, or zero for no limit.
    pub fn new(backoff: Backoff, pace: Duration, seed: u64) -> Self {
        let rng = Mutex::new(Rng::with_seed(seed));
        Self(Arc::new(Inner { state: Mutex::new(QueueState::new(pace)), rng, backoff, changed: Notify::new() }))
    }

    /// Limits the number of keys of one namespace that are in work at once.
    #[must_use]
    pub fn sharing(self, most: usize) -> Self {
        self.state(|state| state.share(most));
        self
    }

    /// Adds a key, unless it is waiting already.
    pub fn add(&self, key: &ObjectKey, urgency: Urgency) {
        if self.state(|state| state.add(key, urgency, Instant::now())) {
            self.0.changed.notify_one();
        }
    }

    /// Adds a key after a time, unless it comes earlier anyway. An earlier turn cancels this, because the pass then
    /// decides again.
    pub fn add_after(&self, key: &ObjectKey, wait: Duration) {
        self.state(|state| state.add_at(key, Instant::now() + wait));
        self.0.changed.notify_one();
    }

    /// Adds a key again after a failure, with a backoff that grows with each failure in a row. An event brings the key
    /// back earlier, but not before `at_least`, which is limited to the maximum backoff. Returns the wait.
    pub fn retry(&self, key: &ObjectKey, at_least: Option<Duration>) -> Duration {
        let failures = self.state(|state| state.failed(key));
        let wait = self.0.backoff.after(failures, &mut lock(&self.0.rng));
        let at_least = at_least.unwrap_or_default().min(self.0.backoff.max);
        let wait = wait.max(at_least);
        if !at_least.is_zero() {
            self.state(|state| state.hold(key, Instant::now() + at_least));
        }
        self.add_after(key, wait);
        wait
    }

    /// Resets the key's number of failures.
    pub fn succeeded(&self, key: &ObjectKey) {
        self.state(|state| state.succeeded(key));
    }

    /// Number of failures of this key in a row.
    #[cfg(test)]
    pub fn failures(&self, key: &ObjectKey) -> u32 {
        self.state(|state| state.failures(key))
    }

    /// Waits for the next key, and reserves it until the lease is dropped. Returns `None` once the queue is closed.
    pub async fn next(&self) -> Option<Lease> {
        loop {
            let mut changed = pin!(self.0.changed.notified());
            changed.as_mut().enable();
            match self.state(|state| state.next(Instant::now())) {
                Next::Closed => return None,
                Next::Key(key) => return Some(Lease { queue: self.clone(), key }),
                Next::At(Some(time)) => tokio::select! {
                    biased;
                    () = &mut changed => {}
                    () = sleep_until(time) => {}
                },
                Next::At(None) => changed.await,
            }
        }
    }

    /// Closes the queue. Callers that wait for a key get `None`.
    pub fn close(&self) {
        self.state(QueueState::close);
        self.0.changed.notify_waiters();
    }

    /// Number of keys that wait, without those that are due later.
    pub fn depth(&self) -> usize {
        self.state(|state| state.depth())
    }

    /// Number of keys in work.
    #[cfg(test)]
    pub fn leased(&self) -> usize {
        self.state(|state| state.leased())
    }

    /// Number of keys that are due later.
    #[cfg(test)]
    pub fn delayed(&self) -> usize {
        self.state(|state| state.delayed())
    }

    /// The longest time that a key has been waiting.
    pub fn oldest_age(&self) -> Duration {
        self.state(|state| state.oldest(Instant::now()))
    }

    fn state<T>(&self, ask: impl FnOnce(&mut QueueState) -> T) -> T {
        ask(&mut lock(&self.0.state))
    }
}

/// Exclusive right to work on a key, until this is dropped.
#[derive(Debug)]
pub struct Lease {
    queue: Queue,
    key: Arc<ObjectKey>,
}

impl Lease {
    /// The reserved key.
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.queue.state(|state| state.done(&self.key, Instant::now())) {
            self.queue.0.changed.notify_one();
        }
    }
}
