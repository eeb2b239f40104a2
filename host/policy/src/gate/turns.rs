//! Decides when a check may compute. Evaluating a candidate's samples can take as long as twenty passes. In a program
//! that also runs passes, checks and passes take turns.

use std::any::Any;

use super::LoadError;
use crate::compile::CompileError;

/// A turn. It ends when it is dropped.
pub type Turn = Box<dyn Any>;

/// Makes checks take turns with all other computation, and ends checks that are no longer wanted.
pub trait Turns {
    /// Waits for the next turn, which is for one sandbox. Returns `None` if the check is to end.
    fn next(&self) -> Option<Turn>;

    /// Whether the check is to end.
    fn is_over(&self) -> bool;
}

/// Gives every turn at once and ends no check: for programs that compute nothing else.
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

/// Waits until a sandbox may run. Returns an error if the check is no longer wanted.
pub(super) fn next(turns: &dyn Turns) -> Result<Turn, LoadError> {
    turns.next().ok_or(LoadError::Compile(CompileError::Unwanted))
}
