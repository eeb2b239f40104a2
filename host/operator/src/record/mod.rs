//! Records decisions of policies, and repeats them elsewhere.
//!
//! A recorded decision is a [`Case`]: one file with all inputs of a pass and with its answer. The same inputs give the
//! same answer on every machine, so `policy replay` repeats a pass without a cluster.
//!
//! | module | content |
//! |---|---|
//! | `case` | the format of the file |
//! | `answer` | the answer of a pass, with its digest |
//! | `mask` | masks secret values before a case leaves the operator |
//! | `making` | makes a case from a pass |
//! | `recorder` | keeps cases in bounded memory while the operator runs |
//! | `replay` | repeats the pass of a case, with the recorded policies or with a candidate |
//! | `bytes` | finds the code of the recorded policies |

mod answer;
mod bytes;
mod case;
mod making;
mod mask;
mod recorder;
mod replay;
#[cfg(test)]
mod tests;

pub use answer::{CaseAnswer, CaseFailure, CaseVerdict};
pub use bytes::{KnownCode, ReplayError};
pub use case::{Case, CaseError, FORMAT, MaskEffect, Masked, PassedOver, PolicySource, Versions, Why};
pub(crate) use making::RecordedPass;
pub(crate) use recorder::{Recorder, RecorderSize};
pub use replay::{Proposed, Replayed, Replayer};
