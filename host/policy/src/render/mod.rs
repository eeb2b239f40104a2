//! Renders an object: computes the plan for the object. The operator, the command line and the gate call the same
//! function.

mod amended;
mod annotations;
mod binding;
mod decision;
mod document;
mod error;
mod explained;
mod found;
mod inputs;
mod key;
mod layer;
mod load;
pub mod memo;
mod observed;
mod pass;
mod recorded;
mod rendered;
mod renderer;
mod report;
mod secret;
mod size;
mod verdict;

pub use amended::SetBy;
pub use decision::{DecisionId, DecisionIdError, DecisionKey};
pub use document::{Document, Message, Refused};
pub use error::RenderError;
pub use explained::Explained;
pub(crate) use found::Asked;
pub use inputs::{AnsweredNeed, LayerInputs, PassInputs, RecordedAnswer};
pub use load::TOO_LARGE;
pub use observed::{ObservedCall, Observer};
pub use recorded::Repeated;
pub use rendered::Rendered;
pub use renderer::Renderer;
pub use report::{Assessed, HOST_FIELDS};
pub use verdict::{Planned, PolicyFailure, Verdict};

pub use crate::object::{ObjectError, ObjectRef, stripped};
