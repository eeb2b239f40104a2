//! A state to enter.

use kaos_crds::RevisionState;

/// A state to enter, and why.
pub(super) struct Turn {
    pub(super) to: RevisionState,
    pub(super) reason: &'static str,
    pub(super) message: String,
}

impl Turn {
    pub(super) fn new(to: RevisionState, reason: &'static str, message: impl Into<String>) -> Self {
        Self { to, reason, message: message.into() }
    }
}
