//! Exit codes beside success.

/// Input that cannot be used, and anything else that is no answer.
pub(super) const UNUSABLE: u8 = 2;

/// The answer is no, or not yet.
pub(super) const HELD_BACK: u8 = 1;
