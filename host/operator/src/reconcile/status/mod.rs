//! Turns the result of a pass into the object's status, and writes the status.
//!
//! | step | module |
//! |---|---|
//! | collects the live children | `live_children` |
//! | delays the status while a controller has not observed a child's generation | `observed_generation` |
//! | asks the policy, and composes the status (no client) | `assess` |
//! | sets transition times, and finds the transitions that get an Event | `times` |
//! | drops fields that the kind does not declare | `declared_fields` |
//! | writes the status if it differs | `publish`, `write` |
//!
//! [`crate::status`] contains the types, reasons and messages of the conditions.

mod assess;
pub(super) mod declared_fields;
mod live_children;
mod observed_generation;
pub(super) mod publish;
pub(super) mod report;
pub(super) mod times;
mod write;
