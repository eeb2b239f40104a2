//! The state that a revision enters, and why.

use kaos_crds::RevisionState;

/// The status reason of a revision that ended its service because a user deleted its source.
pub(super) const SOURCE_DELETED: &str = "SourceDeleted";

/// The state that a revision enters, and why.
pub(super) struct Transition {
    pub(super) to: RevisionState,
    pub(super) reason: &'static str,
    pub(super) message: String,
}

impl Transition {
    pub(super) fn new(to: RevisionState, reason: &'static str, message: impl Into<String>) -> Self {
        Self { to, reason, message: message.into() }
    }
}
