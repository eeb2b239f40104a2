//! The content of an object's `status`, for passes and for previews without a cluster. No I/O.
//!
//! | content | module |
//! |---|---|
//! | types and reasons of conditions | `conditions` |
//! | the status after a complete pass | `compose` |
//! | the status after a pass that did not finish | `unfinished` |
//!
//! The writer of the status adds transition times, since they depend on the previous status.

mod compose;
pub(crate) mod conditions;
mod unfinished;

pub use compose::{Standing, compose, missing};
pub use conditions::Hindrance;
pub(crate) use unfinished::amend;
