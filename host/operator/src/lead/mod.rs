//! One writer among the replicas: a Lease, held as Go's clients hold it, so that the Go operator and this one take turns.
//!
//! Why there are never two: a replica takes a Lease over only after it has seen it unchanged, on its own clock, for as long
//! as the holder asked for; and it does so by an update of exactly what it saw, so that of several replicas one succeeds.
//! The holder counts from before it asked to renew, and gives up earlier. From then on its [`Fence`] lets no write through,
//! and writes that are on their way are broken off. No time that another machine wrote is compared with a clock.
//!
//! Losing the Lease is for good: the process ends, and starts again as one that waits. That is left to whoever runs it.

mod election;
mod fence;
mod held;
mod identity;
mod lease;
mod record;
mod seat;
mod seize;
#[cfg(test)]
mod tests;
mod timing;

pub use election::Election;
pub use fence::Fence;
pub use held::Held;
pub use identity::identity;
use lease::SILENT;
pub use lease::{LEASE, Lost, Standing};
pub use seize::seize;
pub use timing::{Timing, TimingError};
