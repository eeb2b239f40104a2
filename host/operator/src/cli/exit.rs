//! Exit codes other than success.

use std::process::ExitCode;

use super::output::complain;
use crate::error_text::with_causes;

/// The input is unusable, or the command could not answer.
pub(super) const UNUSABLE: u8 = 2;

/// The command worked, and its answer is "no" or "not yet".
pub(super) const HELD_BACK: u8 = 1;

/// Ends a command that reports changes or findings with exit code 2.
///
/// After an error, prints the error and exits with code 1 instead.
pub(super) fn or_held_back(done: anyhow::Result<ExitCode>) -> ExitCode {
    done.unwrap_or_else(|error| {
        complain("error", with_causes(error.as_ref()));
        ExitCode::from(HELD_BACK)
    })
}
