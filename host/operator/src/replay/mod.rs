//! Repeats recorded decisions: the same inputs give the same answer on every machine.
//!
//! | module | content |
//! |---|---|
//! | `answered` | the answer of a repeated decision |
//! | `known_code` | finds the code of the recorded policies |
//! | `repeat` | repeats the pass of a case, with the recorded policies or with a candidate |
//! | `mask` | masks secret values before a case leaves the operator, and repeats the pass with the masks |
//! | `sides` | recorded answers in the form of `policy plan` |

mod answered;
mod known_code;
mod mask;
mod repeat;
mod sides;
#[cfg(test)]
pub(crate) mod tests;

pub use known_code::{KnownCode, ReplayError};
pub use mask::masked;
pub use repeat::{Proposed, Replayed, Replayer};
