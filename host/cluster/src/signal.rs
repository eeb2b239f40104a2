//! A number that only rises, and tasks that wait until the number rises.
//!
//! The tasks wake in the order in which they began to wait.
//!
//! Tokio's watch channel would wake waiting tasks in random order, so no test could repeat a run.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use tokio::sync::Notify;

#[derive(Debug, Default)]
struct Shared {
    value: AtomicU64,
    closed: AtomicBool,
    raised: Notify,
}

/// Raises the number. Dropping the sender ends the wait of all receivers.
#[derive(Debug, Default)]
pub(crate) struct Sender(Arc<Shared>);

/// Waits until the number rises.
#[derive(Debug)]
pub(crate) struct Receiver {
    shared: Arc<Shared>,
    seen: u64,
}

impl Sender {
    /// Raises the number to `value`. Never lowers the number.
    pub(crate) fn raise(&self, value: u64) {
        self.0.value.fetch_max(value, Ordering::AcqRel);
        self.0.raised.notify_waiters();
    }

    /// Adds one to the number.
    pub(crate) fn bump(&self) {
        self.0.value.fetch_add(1, Ordering::AcqRel);
        self.0.raised.notify_waiters();
    }

    /// Returns a receiver that has seen the current number.
    pub(crate) fn subscribe(&self) -> Receiver {
        Receiver { shared: Arc::clone(&self.0), seen: self.0.value.load(Ordering::Acquire) }
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.0.closed.store(true, Ordering::Release);
        self.0.raised.notify_waiters();
    }
}

/// The error after the sender was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Closed;

impl Receiver {
    /// Returns whether the number has risen since the receiver last saw it.
    pub(crate) fn has_changed(&self) -> bool {
        self.shared.value.load(Ordering::Acquire) > self.seen
    }

    /// Marks the current number as seen and returns it.
    pub(crate) fn look(&mut self) -> u64 {
        self.seen = self.shared.value.load(Ordering::Acquire);
        self.seen
    }

    /// Waits until the number has risen, and remembers the new number as seen.
    pub(crate) async fn changed(&mut self) -> Result<(), Closed> {
        loop {
            let raised = self.shared.raised.notified();
            if self.shared.value.load(Ordering::Acquire) > self.seen {
                break;
            }
            if self.shared.closed.load(Ordering::Acquire) {
                return Err(Closed);
            }
            raised.await;
        }
        self.look();
        Ok(())
    }

    /// Waits until the number is at least `value`.
    pub(crate) async fn reaches(&mut self, value: u64) {
        while self.look() < value && self.changed().await.is_ok() {}
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn waiting_tasks_wake_in_the_order_of_arrival() {
        let (sender, order) = (Sender::default(), Arc::new(Mutex::new(Vec::new())));
        for number in 0..50 {
            let (mut receiver, order) = (sender.subscribe(), Arc::clone(&order));
            tokio::spawn(async move {
                receiver.changed().await.unwrap();
                order.lock().unwrap().push(number);
            });
        }
        tokio::task::yield_now().await;
        sender.bump();
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        assert_eq!(*order.lock().unwrap(), (0..50).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn waiting_ends_when_the_sender_is_dropped() {
        let sender = Sender::default();
        let mut receiver = sender.subscribe();
        sender.raise(7);
        assert!(receiver.has_changed());
        receiver.reaches(7).await;
        drop(sender);
        assert_eq!(receiver.changed().await, Err(Closed));
    }
}
