//! The state that a revision enters.

use kaos_crds::RevisionState;

/// The state that a revision enters, and why.
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
