//! The work queue: which object is looked at next, and never twice at once.
//!
//! Keys wait in three lines. Fresh events come first; what concerns many objects at once waits in the others, from which
//! every so often one is taken too: a start, or a thing that many need, as fast as it goes; a policy swap at a pace. A key that is added while somebody works on it comes again
//! afterwards. In each line the namespaces take turns, and of one namespace not more are worked on at once than is said.
//! Each key has its own backoff. How many work at once is left to the callers of [`Queue::next`].

mod backoff;
mod book;
mod line;
#[cfg(test)]
mod tests;
mod urgency;

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

pub use backoff::Backoff;
pub(crate) use backoff::in_millis;
pub use urgency::Urgency;

use book::{Book, Next};

use crate::{locking::lock, watch::ObjectKey};

/// The queue. Clones are the same queue.
#[derive(Clone)]
pub struct Queue(Arc<Inner>);

struct Inner {
    book: Mutex<Book>,
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
    /// An empty queue. `pace` is the least time between two paced keys; zero for none.
    pub fn new(backoff: Backoff, pace: Duration, seed: u64) -> Self {
        let rng = Mutex::new(Rng::with_seed(seed));
        Self(Arc::new(Inner { book: Mutex::new(Book::new(pace)), rng, backoff, changed: Notify::new() }))
    }

    /// Of one namespace, at most so many keys are worked on at once.
    #[must_use]
    pub fn sharing(self, most: usize) -> Self {
        self.book(|book| book.share(most));
        self
    }

    /// Adds a key, if it is not waiting already.
    pub fn add(&self, key: &ObjectKey, urgency: Urgency) {
        if self.book(|book| book.add(key, urgency, Instant::now())) {
            self.0.changed.notify_one();
        }
    }

    /// Adds a key after a time, unless it comes earlier anyway. Coming earlier makes this void: whoever works on it decides
    /// anew.
    pub fn add_after(&self, key: &ObjectKey, wait: Duration) {
        self.book(|book| book.add_at(key, Instant::now() + wait));
        self.0.changed.notify_one();
    }

    /// Adds a key that is worked on again after a failure: after a time that grows with each failure in a row. Events make
    /// it come earlier, though not before `at_least`, as far as that is within the longest wait. Returns the time.
    pub fn retry(&self, key: &ObjectKey, at_least: Option<Duration>) -> Duration {
        let failures = self.book(|book| book.failed(key));
        let wait = self.0.backoff.after(failures, &mut lock(&self.0.rng));
        let at_least = at_least.unwrap_or_default().min(self.0.backoff.max);
        let wait = wait.max(at_least);
        if !at_least.is_zero() {
            self.book(|book| book.hold(key, Instant::now() + at_least));
        }
        self.add_after(key, wait);
        wait
    }

    /// The next failure of this key is the first.
    pub fn succeeded(&self, key: &ObjectKey) {
        self.book(|book| book.succeeded(key));
    }

    /// Failures of this key in a row.
    #[cfg(test)]
    pub(crate) fn failures(&self, key: &ObjectKey) -> u32 {
        self.book(|book| book.failures(key))
    }

    /// Waits for the next key, and holds it until the lease is dropped. None once the queue is closed.
    pub async fn next(&self) -> Option<Lease> {
        loop {
            let mut changed = pin!(self.0.changed.notified());
            changed.as_mut().enable();
            match self.book(|book| book.next(Instant::now())) {
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

    /// Ends it: whoever waits for a key gets none.
    pub fn close(&self) {
        self.book(Book::close);
        self.0.changed.notify_waiters();
    }

    /// Keys that wait to be worked on; not those whose time has not come.
    pub fn depth(&self) -> usize {
        self.book(|book| book.depth())
    }

    /// Keys that are worked on.
    #[cfg(test)]
    pub(crate) fn leased(&self) -> usize {
        self.book(|book| book.leased())
    }

    /// Keys whose time has not come.
    #[cfg(test)]
    pub(crate) fn delayed(&self) -> usize {
        self.book(|book| book.delayed())
    }

    /// How long the key that waits longest has waited.
    pub fn oldest_age(&self) -> Duration {
        self.book(|book| book.oldest(Instant::now()))
    }

    fn book<T>(&self, ask: impl FnOnce(&mut Book) -> T) -> T {
        ask(&mut lock(&self.0.book))
    }
}

/// The right to work on a key. Nobody else has it until this is dropped.
#[derive(Debug)]
pub struct Lease {
    queue: Queue,
    key: Arc<ObjectKey>,
}

impl Lease {
    /// The key.
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.queue.book(|book| book.done(&self.key, Instant::now())) {
            self.queue.0.changed.notify_one();
        }
    }
}
