//! The reasons why a pass did not finish, and the conditions that report them.

use std::time::Duration;

use crate::status::conditions::{ACCEPTED, APPLIED, reason};

/// The reason why the pass did not finish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PassFailed {
    /// No policy answers for the object.
    NoPolicy,
    /// The pass exceeded its time limit, which this variant contains.
    Late(Duration),
    /// The pass panicked. Contains the message of the panic.
    Panicked(String),
}

impl PassFailed {
    /// Returns whether the reason probably lasts until a person acts. A late pass does not last, because the next pass
    /// may finish in time.
    pub(crate) fn is_lasting(&self) -> bool {
        match self {
            Self::NoPolicy | Self::Panicked(_) => true,
            Self::Late(_) => false,
        }
    }

    /// Returns the condition that reports the reason: its type, reason and message.
    pub(crate) fn condition(&self) -> (&'static str, &'static str, String) {
        match self {
            Self::NoPolicy => (
                ACCEPTED,
                reason::NO_POLICY,
                "no policy answers for objects of this kind in this namespace: install a policy, or widen the scope of \
                 an installed policy".to_owned(),
            ),
            Self::Late(time) => (
                APPLIED,
                reason::APPLY_FAILED,
                format!(
                    "the pass did not finish within {} s and is retried: find out why the API server is slow",
                    time.as_secs()
                ),
            ),
            Self::Panicked(message) => (
                APPLIED,
                reason::APPLY_FAILED,
                format!(
                    "the operator failed ({message}) and tries again: this is a bug of the operator, please report it"
                ),
            ),
        }
    }
}
