//! Receives the objects that the watch reports. Passes them on to the queue, to the task for the decision point, and to
//! running previews.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use crate::{
    decision_point::News,
    preview::Changes,
    queue::{Queue, Urgency},
    watch::{ObjectKey, Watch},
};

/// Receives the objects that the watch reports.
pub(super) struct Waker {
    queue: Queue,
    /// Notifies the task that writes the objects for the decision point.
    pub(super) news: Arc<News>,
    /// Records the objects that the watch reports while the operator computes the effect of a package.
    pub(super) changes: Arc<Changes>,
    /// `false` while another replica holds the Lease. The queue then stays empty, so that no metric reports objects
    /// that wait for a pass.
    is_awake: AtomicBool,
}

impl Waker {
    pub(super) fn new(queue: Queue) -> Self {
        Self { queue, news: Arc::default(), changes: Arc::default(), is_awake: AtomicBool::new(true) }
    }

    /// Passes an object on.
    pub(super) fn wake(&self, key: &ObjectKey, urgency: Urgency) {
        if self.is_awake.load(Ordering::SeqCst) {
            self.pass_on(key, urgency);
        }
    }

    /// Ignores all objects from now on.
    pub(super) fn sleep(&self) {
        self.is_awake.store(false, Ordering::SeqCst);
    }

    /// Passes on all objects that the watch contains, and all objects that the watch reports from now on. Leaves out a
    /// kind if the watch has not listed all types that its policies use: the watch itself reports the objects of this
    /// kind later.
    pub(super) fn awake(&self, watch: &Watch) {
        // Set `is_awake` before reading the objects: an object that arrives in between is passed on twice, but none is
        // lost.
        self.is_awake.store(true, Ordering::SeqCst);
        for (of, _) in watch.coverage().primaries().filter(|(of, _)| watch.waiting_for(of).is_empty()) {
            for key in watch.keys(of) {
                self.pass_on(&key, Urgency::Bulk);
            }
        }
    }

    fn pass_on(&self, key: &ObjectKey, urgency: Urgency) {
        self.news.about(key);
        self.changes.about(key);
        self.queue.add(key, urgency);
    }
}

#[cfg(test)]
mod tests {
    use kaos_policy::contract::ResourceType;

    use super::*;

    #[test]
    fn nothing_is_queued_while_another_replica_works() {
        let queue = Queue::new(crate::backoff::Backoff::default(), std::time::Duration::ZERO, 0);
        let waker = Waker::new(queue.clone());
        let key = ObjectKey::new(ResourceType::new("x.io/v1", "Widget"), "n", "a");
        waker.sleep();
        waker.wake(&key, Urgency::Fresh);
        assert_eq!(queue.depth(), 0);
        waker.is_awake.store(true, Ordering::SeqCst);
        waker.wake(&key, Urgency::Fresh);
        assert_eq!(queue.depth(), 1);
    }
}
