//! Why the operator does not let a package serve.

use kaos_crds::RevisionState;

use super::Transition;
use crate::catalogue::Overreach;

/// The status reason of settings that the operator refuses because their policy does not exist yet.
pub(super) const NO_SUCH_POLICY: &str = "NoSuchPolicy";

/// Why a package is not admitted.
pub(super) struct NotAdmitted {
    pub(super) transition: Transition,
    /// Whether a later attempt with the same package can succeed.
    pub(super) again: bool,
}

impl NotAdmitted {
    pub(super) fn refused(reason: &'static str, message: impl Into<String>) -> Self {
        Self { transition: Transition::new(RevisionState::Refused, reason, message), again: false }
    }

    /// Lets the package wait. The operator tries the package again later.
    pub(super) fn pending(reason: &'static str, message: impl Into<String>) -> Self {
        Self { transition: Transition::new(RevisionState::Pending, reason, message), again: true }
    }
}

impl From<Overreach> for NotAdmitted {
    fn from(Overreach { reason, message }: Overreach) -> Self {
        Self::refused(reason, message)
    }
}
