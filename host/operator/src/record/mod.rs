//! Records decisions of policies. A recorded decision is a [`Case`]: one file with all inputs of a pass and with its
//! answer. [`crate::replay`] repeats it.
//!
//! | module | content |
//! |---|---|
//! | `case` | the format of the file |
//! | `answer` | the answer of a pass, with its digest |
//! | `making` | makes a case from a pass |
//! | `recorder` | keeps cases in bounded memory while the operator runs |

mod answer;
mod case;
mod making;
mod recorder;

pub use answer::{CaseAnswer, CaseFailure, CaseVerdict};
pub use case::{
    Case, CaseError, FORMAT, MaskEffect, Masked, ObservedChildren, PassedOver, PolicySource, Versions, Why,
};
pub(crate) use making::{FailedAssessment, RecordedPass};
pub(crate) use recorder::{Recorder, RecorderSize};
