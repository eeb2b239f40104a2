//! The limits of a budget, and the answer to an object that asks for a pass.

use std::time::Duration;

/// The limits per minute, for each kind in each namespace. `None` is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BudgetLimits {
    /// The fuel of the policies.
    pub fuel: Option<u64>,
    /// The number of passes.
    pub passes: Option<u64>,
}

/// Whether a pass may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    /// The pass may begin.
    Begins,
    /// The object must wait for this time.
    Waits(Duration),
    /// Like [`Self::Waits`]. The object is one of the first that wait, so the caller should write an Event about it.
    BeginsToWait(Duration),
}
