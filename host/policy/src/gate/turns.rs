//! Decides when a check of a candidate may run sandboxes. The evaluation of the samples can take as long as twenty
//! passes, so checks take turns with passes.

use std::any::Any;

use super::LoadError;
use crate::compile::CompileError;

/// The right of a check to run a sandbox. Dropping this value ends the turn.
pub type Turn = Box<dyn Any>;

/// Makes checks take turns with all other computation, and ends checks that the caller no longer needs.
pub trait Turns {
    /// Waits for the next turn. During a turn, only one sandbox runs. Returns `None` if the check must end.
    fn next(&self) -> Option<Turn>;

    /// Returns whether the check must end.
    fn is_over(&self) -> bool;
}

/// Gives every turn immediately, and never ends a check. Use this type in programs that compute nothing except the
/// check.
#[derive(Debug, Clone, Copy, Default)]
pub struct AtOnce;

impl Turns for AtOnce {
    fn next(&self) -> Option<Turn> {
        Some(Box::new(()))
    }

    fn is_over(&self) -> bool {
        false
    }
}

/// Waits for the turn of the check. Returns an error if the check must end.
pub(super) fn next(turns: &dyn Turns) -> Result<Turn, LoadError> {
    turns.next().ok_or(LoadError::Compile(CompileError::Unwanted))
}
