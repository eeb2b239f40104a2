//! The state of a watch that another part of the operator runs.

use kaos_objects::ResourceType;

use crate::metrics::WatchState;

/// The state of a watch that another part of the operator runs.
#[derive(Debug)]
pub(super) struct ForeignState {
    pub(super) of: ResourceType,
    /// The watch's purpose.
    pub(super) what: &'static str,
    pub(super) state: WatchState,
    pub(super) was_listed: bool,
    /// The reason why the watch is not synced.
    pub(super) trouble: String,
}

impl ForeignState {
    /// Returns the reason why readiness must wait for this watch: the first list or a right is missing. Returns `None`
    /// if readiness need not wait, for example because the API server does not serve the type.
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
