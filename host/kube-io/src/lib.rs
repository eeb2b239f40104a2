//! Kubernetes I/O. The code in this crate does not depend on policies.
//!
//! | module | contents |
//! |---|---|
//! | [`client`] | the client of the API server: deadline, fence and metrics of every request |
//! | [`leader_election`] | leader election, and the fence that stops writes without the Lease |
//! | [`watch`] | the objects in memory, the watches that keep them current, and the index of needs |
//! | [`queue`] | the work queue: which object gets the next pass |
//! | [`events`] | writes Events, and recognizes repetitions |
//! | [`backoff`] | waits that grow with each failure, with or without jitter |
//! | [`object_key`], [`urgency`] | type, namespace and name of an object; how urgent its pass is |
//! | [`metrics`] | the measurements of this crate, for a registry of the caller |
//! | [`hashing`], [`locking`], [`error_text`] | hashes without a seed, locks after a panic, texts of errors |

pub mod backoff;
pub mod client;
pub mod error_text;
pub mod events;
pub mod hashing;
pub mod leader_election;
pub mod locking;
pub mod metrics;
pub mod object_key;
pub mod queue;
#[cfg(test)]
mod recorded;
pub mod urgency;
pub mod watch;
