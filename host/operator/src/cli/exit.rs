//! Exit codes other than success.

/// The input is unusable, or the verb could not answer.
pub(super) const UNUSABLE: u8 = 2;

/// The answer is no, or not yet.
pub(super) const HELD_BACK: u8 = 1;
