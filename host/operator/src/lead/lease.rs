//! The Lease by its name, and how a replica stands to it.

use std::time::Duration;

/// The name of the Lease: the Go operator's.
pub const LEASE: &str = "kaos-operator.kaos.tools";

/// What is said of an API server that does not.
pub(super) const SILENT: &str = "the API server does not answer";

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
