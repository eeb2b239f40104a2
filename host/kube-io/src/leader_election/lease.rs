//! The name of the Lease, and the state of the Lease as one replica sees it.

use std::time::Duration;

/// The name of the Lease. The Go operator uses the same name.
pub const LEASE: &str = "kaos-operator.kaos.tools";

/// The message for a request that the API server does not answer.
pub(super) const API_SERVER_SILENT: &str = "the API server did not respond";

/// Whether a replica holds the Lease, as far as the replica knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// The replica does not know the state of the Lease. The text is the reason.
    Unknown(String),
    /// Another replica holds the Lease. The text is the identity of the other replica.
    Behind(String),
    /// This replica holds the Lease.
    Leading,
}

/// The reason why a replica must no longer write.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    /// Another replica holds the Lease.
    #[error("another replica, {0}, took the lease {LEASE}")]
    Taken(String),
    /// The Lease was deleted or has no holder.
    #[error("another client deleted or released the lease {LEASE}")]
    Gone,
    /// The API server did not accept a renewal in time.
    #[error("could not renew the lease {LEASE} for {}s: {because}", within.as_secs_f64())]
    NotRenewed {
        /// The time limit for the renewal.
        within: Duration,
        /// The result of the last attempt.
        because: String,
    },
}
