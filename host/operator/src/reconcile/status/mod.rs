//! The status of an object: from the result of a pass to the written status.
//!
//! | step | module |
//! |---|---|
//! | collects the live children | `live_children` |
//! | the delay while a controller has not observed a child's generation | `observed_generation` |
//! | asks the policy, and composes the status; no client | `assess` |
//! | transition times, and the transitions that get an Event | `times` |
//! | the fields that the kind declares | `declared_fields` |
//! | the write, only if the status differs | `publish`, `write` |
//!
//! [`crate::status`] has the types, reasons and messages of the conditions.

mod assess;
pub(super) mod declared_fields;
mod live_children;
mod observed_generation;
pub(super) mod publish;
pub(super) mod report;
pub(super) mod times;
mod write;
