//! What somebody else's watch is doing.

use kaos_policy::contract::ResourceType;

use crate::metrics::WatchState;

/// What somebody else's watch is doing.
#[derive(Debug)]
pub(super) struct Other {
    pub(super) of: ResourceType,
    /// What it is for.
    pub(super) what: &'static str,
    pub(super) state: WatchState,
    pub(super) was_listed: bool,
    /// Why it is not synced.
    pub(super) trouble: String,
}

impl Other {
    /// What readiness waits for, if it does: the first list, and a right that is missing. A type that is not served is no
    /// trouble.
    pub(super) fn missing(&self) -> Option<String> {
        let Self { of, what, state, was_listed, trouble } = self;
        match state {
            WatchState::Unserved => None,
            WatchState::Forbidden => Some(format!("{what}: {trouble}")),
            _ if *was_listed => None,
            _ if trouble.is_empty() => Some(format!("{what} ({of}): not listed yet")),
            _ => Some(format!("{what}: {trouble}")),
        }
    }
}
