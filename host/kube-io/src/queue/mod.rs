//! The work queue decides which object gets the next pass. At any time, at most one pass works on an object.
//!
//! Each waiting key has one of three urgencies. A key is [`Fresh`](Urgency::Fresh) after an event for its object, or at
//! the time for which a caller scheduled the key. A key is [`Bulk`](Urgency::Bulk) after the start of the operator, or
//! after a change of an object that many objects need. A key is [`Paced`](Urgency::Paced) after a policy swap, and the
//! queue limits the pace of paced keys. Fresh keys come first. After several fresh keys in a row, the queue returns one
//! bulk or paced key. If a caller adds a key during a pass over the same key, the queue returns the key again after
//! this pass. Among keys of the same urgency, the namespaces take turns. The queue limits the number of passes that run
//! at the same time for one namespace. Each key has its own backoff. The callers of [`Queue::next`] decide how many
//! passes run at the same time.

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

/// The queue. All clones share the same state.
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

    /// Limits how many keys of one namespace are in work at the same time.
    #[must_use]
    pub fn sharing(self, most: usize) -> Self {
        self.state(|state| state.share(most));
        self
    }

    /// Adds a key. If the key already waits, this call can only raise its urgency.
    pub fn add(&self, key: &ObjectKey, urgency: Urgency) {
        if self.state(|state| state.add(key, urgency, Instant::now())) {
            self.0.changed.notify_one();
        }
    }

    /// Adds a key after the time `wait`. Does nothing if the key already waits, or is already scheduled for an earlier
    /// time. If a pass over the key begins before that time, the queue forgets the time, because this pass can set a
    /// new time.
    pub fn add_after(&self, key: &ObjectKey, wait: Duration) {
        self.state(|state| state.add_at(key, Instant::now() + wait));
        self.0.changed.notify_one();
    }

    /// Adds a key again after a failure. The wait is a backoff that grows with each failure in a row. An event shortens
    /// the wait, but not below `at_least`. The queue limits `at_least` to the maximum backoff. Returns the wait.
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

    /// Returns the number of failures of this key in a row.
    #[cfg(test)]
    pub fn failures(&self, key: &ObjectKey) -> u32 {
        self.state(|state| state.failures(key))
    }

    /// Waits for the next key, and reserves the key until the caller drops the lease. Returns `None` after the queue
    /// was closed.
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

    /// Closes the queue. Callers that wait for a key receive `None`.
    pub fn close(&self) {
        self.state(QueueState::close);
        self.0.changed.notify_waiters();
    }

    /// Returns the number of keys that wait now. Does not count keys that are due later.
    pub fn depth(&self) -> usize {
        self.state(|state| state.depth())
    }

    /// Returns the number of keys in work.
    #[cfg(test)]
    pub fn leased(&self) -> usize {
        self.state(|state| state.leased())
    }

    /// Returns the number of keys that are due later.
    #[cfg(test)]
    pub fn delayed(&self) -> usize {
        self.state(|state| state.delayed())
    }

    /// Returns how long the oldest waiting key has waited.
    pub fn oldest_age(&self) -> Duration {
        self.state(|state| state.oldest(Instant::now()))
    }

    fn state<T>(&self, ask: impl FnOnce(&mut QueueState) -> T) -> T {
        ask(&mut lock(&self.0.state))
    }
}

/// The exclusive right to work on a key. Dropping this lease ends the work.
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
