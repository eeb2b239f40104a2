//! Retries when rights return. Objects whose passes lacked a right wait ever longer, except one, which retries
//! regularly. As soon as one pass succeeds, all others retry at once.

use super::{Watch, slot::Handle, state::State};
use crate::{
    object_key::{ObjectKey, Wakes},
    queue::Urgency,
};

impl Watch {
    /// A number that changes whenever rights return.
    pub fn rights(&self) -> u64 {
        self.0.with(|state| *state.rights.borrow())
    }

    /// Records that a pass lacked a right. `began` is the value of [`rights`](Self::rights) at its start. The object is
    /// woken when rights return, or at once if they returned during the pass. Returns whether this object is the one
    /// that retries regularly.
    pub fn was_denied(&self, key: &ObjectKey, began: u64) -> bool {
        let mut goes_on = false;
        self.0.tell(|state| {
            if *state.rights.borrow() != began {
                return vec![(key.clone(), Urgency::Bulk)];
            }
            state.denied.insert(key.clone());
            goes_on = state.denied.first() == Some(key);
            Wakes::new()
        });
        goes_on
    }

    /// Number of objects that wait for rights.
    pub fn denied(&self) -> usize {
        self.0.with(|state| state.denied.len())
    }

    /// Records that a pass ran to its end. If the object's last pass lacked a right, rights have returned.
    pub fn was_let_in(&self, key: &ObjectKey) {
        self.0.tell(|state| if state.denied.remove(key) { state.rights_are_back() } else { Wakes::new() });
    }
}

impl State {
    /// Changes the state of one watch. If the API server no longer refuses that watch, rights have returned.
    pub(super) fn let_in(&mut self, handle: &Handle, change: impl FnOnce(&mut Self) -> Wakes) -> Wakes {
        let was_refused = self.is_refused(handle);
        let mut wakes = change(self);
        if was_refused && !self.is_refused(handle) {
            wakes.extend(self.rights_are_back());
        }
        wakes
    }

    fn is_refused(&self, handle: &Handle) -> bool {
        let slot = self.slots.get(&*handle.spec).filter(|slot| slot.id == handle.id);
        slot.is_some_and(|slot| slot.cache.is_refused())
    }

    fn rights_are_back(&mut self) -> Wakes {
        self.rights.send_modify(|times| *times += 1);
        std::mem::take(&mut self.denied).into_iter().map(|key| (key, Urgency::Bulk)).collect()
    }
}
