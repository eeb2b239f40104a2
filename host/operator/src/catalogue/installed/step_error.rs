//! The error of a lifecycle step.

use crate::error_text::with_causes;

/// The reason why a step failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {message}")]
pub(crate) struct StepError {
    pub(super) what: String,
    pub(super) message: String,
    /// True if this error is an answer of the API server. False if the API server did not answer.
    pub(super) is_answered: bool,
}

impl StepError {
    pub(super) fn new(what: impl Into<String>, error: &(dyn std::error::Error + 'static)) -> Self {
        let is_answered = matches!(error.downcast_ref(), Some(kube::Error::Api(_)));
        Self { what: what.into(), message: with_causes(error), is_answered }
    }
}
