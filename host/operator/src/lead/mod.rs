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
mod record;
mod seize;
#[cfg(test)]
mod tests;
mod timing;

use std::time::Duration;

pub use election::Election;
pub use fence::Fence;
pub use held::Held;
pub use identity::identity;
pub use seize::seize;
pub use timing::{Timing, TimingError};

/// The name of the Lease: the Go operator's.
pub const LEASE: &str = "kaos-operator.kaos.tools";

/// What is said of an API server that does not.
const SILENT: &str = "the API server does not answer";

/// What a replica knows of the Lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// Nothing; with the reason.
    Unknown(String),
    /// Another holds it.
    Behind(String),
    /// This one holds it.
    Leading,
}

/// Why a replica may no longer write.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    /// Somebody else holds it.
    #[error("the lease {LEASE} was taken by {0}")]
    Taken(String),
    /// Nobody holds it any more.
    #[error("the lease {LEASE} was deleted or released by somebody else")]
    Gone,
    /// The API server did not let it.
    #[error("the lease {LEASE} could not be renewed for {}s: {because}", within.as_secs_f64())]
    NotRenewed {
        /// For how long it was tried.
        within: Duration,
        /// What came of the last try.
        because: String,
    },
}
