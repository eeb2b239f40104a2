//! One pass: makes the cluster match the policy's plan, and writes the result to the object's status.
//!
//! | step | module |
//! |---|---|
//! | all steps in order | `pass` |
//! | which policies answer, and their fallbacks | `select` |
//! | needs and plan; dry run; plan gates | `resolve` |
//! | execution of the plan, and its outcome | `execute` |
//! | the children | `children` |
//! | the status | `status` |
//! | finalizers, and objects that are being deleted | `deletion` |
//! | the result of a pass, and when to look again | `ended` |
//! | which passes a shutdown waits for | `shutdown` |
//! | the wait for the first lists of the children's types | `sync_gate` |
//! | Events | `events` |
//! | calls, and the meaning of their errors | `api`, `error` |
//! | memory between passes | `memory` |
//! | the last pass of an object, for the explain page | `explain` |
//!
//! [`crate::queue`] decides which object is next and when. [`crate::watch`] knows what exists in the cluster.

mod api;
mod children;
mod context;
mod deletion;
mod ended;
mod error;
mod events;
mod execute;
mod explain;
mod mark;
mod memory;
mod pass;
mod resolve;
mod select;
mod shutdown;
mod status;
mod subject;
mod sync_gate;

pub(crate) use children::{immutable::never_changes, leftover_fields::leftovers, managed_fields::put_on};
pub use context::Clock;
pub(crate) use context::{Context, Rules};
pub(crate) use ended::{Ended, Next};
pub(crate) use events::Events;
pub(crate) use memory::Memories;
pub(crate) use select::fallback_round::Hearing;
pub(crate) use shutdown::unless_given_up;
pub(crate) use status::{declared_fields::Projections, pass_failed::Halt};
pub(crate) use sync_gate::HeldBack;
