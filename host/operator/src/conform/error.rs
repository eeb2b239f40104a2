//! The reasons why the checks cannot run.

use kaos_policy::{failure::Failure, gate::TrialError, render::RenderError, settings::SettingsErrors};

/// A reason why the checks cannot run.
#[derive(Debug, thiserror::Error)]
pub enum ConformError {
    /// The policy cannot answer for a claim.
    #[error(transparent)]
    Trial(#[from] TrialError),
    /// The settings do not fit the policy's schema.
    #[error(transparent)]
    Settings(#[from] SettingsErrors),
    /// An object is not of a claimed kind.
    #[error("{case}: {why}")]
    Object {
        /// The name of the object.
        case: String,
        /// The problem.
        why: RenderError,
    },
    /// The machine stalled, or has no memory for a sandbox.
    #[error("{case}: {why}: run the command again when the machine has less to do")]
    Stalled {
        /// The name of the object.
        case: String,
        /// The failure.
        why: Failure,
    },
}
