//! The objects that the watch woke last. A change of a pass's input wakes the object of the pass. So this log shows
//! whether an input changed while the pass ran.

use std::collections::VecDeque;

use crate::object_key::{ObjectKey, Wakes};

/// The number of objects in the log. The watch rarely wakes more objects than this during one pass.
const SIZE: usize = 1_000;

/// A moment, as the numbers of changes and wakes before this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// The number of changes before this moment that concern whole types.
    pub(super) changes: u64,
    /// The number of wakes before this moment.
    pub(super) wakes: u64,
}

/// The objects that the watch woke last, the newest at the end.
#[derive(Debug, Default)]
pub(super) struct WakeLog {
    last: VecDeque<ObjectKey>,
    count: u64,
}

impl WakeLog {
    /// Adds objects. Call this function together with the change that wakes the objects, under the same lock.
    pub(super) fn add(&mut self, wakes: &Wakes) {
        self.count += wakes.len() as u64;
        for (key, _) in &wakes[wakes.len().saturating_sub(SIZE)..] {
            if self.last.len() == SIZE {
                self.last.pop_front();
            }
            self.last.push_back(key.clone());
        }
    }

    /// Returns the number of wakes so far.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Returns whether the watch woke an object after the first `since` wakes. Also returns true if the log no longer
    /// contains all of these wakes.
    pub(super) fn may_contain(&self, key: &ObjectKey, since: u64) -> bool {
        let wakes = usize::try_from(self.count - since).unwrap_or(usize::MAX);
        wakes > self.last.len() || self.last.iter().rev().take(wakes).any(|woken| woken == key)
    }
}

#[cfg(test)]
mod tests {
    use kaos_objects::ResourceType;

    use super::*;
    use crate::urgency::Urgency;

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new(ResourceType::new("x.io/v1", "Widget"), "n", name)
    }

    #[test]
    fn the_log_knows_the_last_wakes_and_doubts_the_earlier_ones() {
        let (mut log, a, b) = (WakeLog::default(), key("a"), key("b"));
        log.add(&vec![(a.clone(), Urgency::Fresh)]);
        assert!(log.may_contain(&a, 0) && !log.may_contain(&b, 0));
        assert!(!log.may_contain(&a, 1), "the object was woken before");
        log.add(&vec![(b.clone(), Urgency::Fresh); SIZE - 1]);
        assert!(log.may_contain(&a, 0) && !log.may_contain(&a, 1) && log.may_contain(&b, 1));
        log.add(&vec![(b, Urgency::Fresh); 2 * SIZE]);
        assert!(log.may_contain(&a, 1), "the log does not contain all wakes since then");
        assert!(!log.may_contain(&a, log.count()));
    }
}
