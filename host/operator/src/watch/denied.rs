//! Rights that come back. Whoever was refused waits longer from time to time, one object apart, which goes on trying. As soon
//! as one is let in again, all others try at once.

use super::{
    Watch,
    key::{ObjectKey, Wakes},
    slot::Handle,
    state::State,
};
use crate::queue::Urgency;

impl Watch {
    /// A number that changes whenever rights came back.
    pub(crate) fn rights(&self) -> u64 {
        self.0.with(|state| *state.rights.borrow())
    }

    /// A pass that began when [`rights`](Self::rights) was `began` was refused something. Its object is woken when rights come
    /// back, and at once if they did meanwhile. Returns whether it is the one that goes on trying.
    pub(crate) fn was_denied(&self, key: &ObjectKey, began: u64) -> bool {
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

    /// How many objects wait for rights.
    pub(crate) fn denied(&self) -> usize {
        self.0.with(|state| state.denied.len())
    }

    /// A pass over an object came to its end. If the last one was refused something, rights are back.
    pub(crate) fn was_let_in(&self, key: &ObjectKey) {
        self.0.tell(|state| if state.denied.remove(key) { state.rights_are_back() } else { Wakes::new() });
    }
}

impl State {
    /// Changes what one watch knows. If that was refused before and is no longer, rights are back.
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
        slot.is_some_and(|slot| slot.shelf.is_refused())
    }

    fn rights_are_back(&mut self) -> Wakes {
        self.rights.send_modify(|times| *times += 1);
        std::mem::take(&mut self.denied).into_iter().map(|key| (key, Urgency::Bulk)).collect()
    }
}
