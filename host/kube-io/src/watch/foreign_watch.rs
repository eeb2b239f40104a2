//! Reports watches that other parts of the operator run. Metrics and readiness show these watches in the same way as
//! the watches of this module.

use std::sync::Arc;

use kaos_objects::ResourceType;

use super::{foreign_state::ForeignState, shared::Shared};
use crate::metrics::WatchState;

/// A watch that another part of the operator runs. Metrics and readiness show the watch until the caller drops this
/// handle.
pub struct ForeignWatch {
    shared: Arc<Shared>,
    id: u64,
}

impl ForeignWatch {
    pub(super) fn new(shared: Arc<Shared>, of: ResourceType, what: &'static str) -> Self {
        let other = ForeignState { of, what, state: WatchState::Listing, was_listed: false, trouble: String::new() };
        let id = shared.with(|state| {
            state.last_id += 1;
            state.foreign.insert(state.last_id, other);
            state.last_id
        });
        Self { shared, id }
    }

    /// Reports that the watch follows the cluster.
    pub fn follows(&self) {
        self.set(WatchState::Synced, String::new());
    }

    /// Reports that the watch failed and will be reopened. `code` is the API server's status code, if there is one.
    pub fn broke(&self, code: Option<u16>, why: &str) {
        let (state, reason) = match code {
            // An outdated version is not an error, because a new list follows.
            Some(410) => return,
            Some(404) => (WatchState::Unserved, "unserved".to_owned()),
            Some(401 | 403) => (WatchState::Forbidden, "forbidden".to_owned()),
            Some(code) => (WatchState::Failing, code.to_string()),
            None => (WatchState::Failing, "connection".to_owned()),
        };
        let of = self.shared.with(|state| state.foreign.get(&self.id).map(|other| other.of.clone()));
        if let Some(of) = of {
            self.shared.metrics.watch_error(&of, &reason);
        }
        self.set(state, why.to_owned());
    }

    /// Returns whether the API server does not serve the type.
    pub fn is_unserved(&self) -> bool {
        self.state() == Some(WatchState::Unserved)
    }

    /// Returns whether the operator lacks the right to follow the type.
    pub fn is_forbidden(&self) -> bool {
        self.state() == Some(WatchState::Forbidden)
    }

    fn state(&self) -> Option<WatchState> {
        self.shared.with(|all| all.foreign.get(&self.id).map(|other| other.state))
    }

    fn set(&self, state: WatchState, trouble: String) {
        self.shared.with(|all| {
            if let Some(other) = all.foreign.get_mut(&self.id) {
                other.was_listed |= state == WatchState::Synced;
                (other.state, other.trouble) = (state, trouble);
            }
        });
    }
}

impl Drop for ForeignWatch {
    fn drop(&mut self) {
        self.shared.with(|state| state.foreign.remove(&self.id));
    }
}
