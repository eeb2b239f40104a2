//! Retries passes when rights return. If passes over several objects lack rights, one object retries at regular
//! intervals, and all other objects wait longer and longer. As soon as one pass succeeds, all other objects retry at
//! once.

use super::{slot::Handle, state::State};
use crate::{object_key::Wakes, queue::Urgency};

/// Changes the state of one watch. If the API server refused the watch before the change and accepts the watch now,
/// wakes the objects that wait for rights.
pub(super) fn let_in(state: &mut State, handle: &Handle, change: impl FnOnce(&mut State) -> Wakes) -> Wakes {
    let was_refused = is_refused(state, handle);
    let mut wakes = change(state);
    if was_refused && !is_refused(state, handle) {
        wakes.extend(rights_are_back(state));
    }
    wakes
}

fn is_refused(state: &State, handle: &Handle) -> bool {
    let slot = state.slots.get(&*handle.spec).filter(|slot| slot.id == handle.id);
    slot.is_some_and(|slot| slot.cache.is_refused())
}

pub(super) fn rights_are_back(state: &mut State) -> Wakes {
    state.rights.send_modify(|times| *times += 1);
    std::mem::take(&mut state.denied).into_iter().map(|key| (key, Urgency::Bulk)).collect()
}
