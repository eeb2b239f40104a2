//! When a check may compute. Running a candidate's samples takes as much as twenty passes, and a program that makes passes
//! meanwhile has them take turns.

use std::any::Any;

use super::LoadError;
use crate::compile::CompileError;

/// A turn, until it is dropped.
pub type Turn = Box<dyn Any>;

/// Has checks take turns with everything else that computes, and ends those that nobody wants any more.
pub trait Turns {
    /// Waits for the next turn, which is one sandbox's; none when the check is to end.
    fn next(&self) -> Option<Turn>;

    /// Whether the check is to end.
    fn is_over(&self) -> bool;
}

/// Nothing else computes: every turn is there at once, and every check goes to its end.
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

/// Waits until a sandbox may run. A check that nobody wants any more ends here.
pub(super) fn next(turns: &dyn Turns) -> Result<Turn, LoadError> {
    turns.next().ok_or(LoadError::Compile(CompileError::Unwanted))
}
