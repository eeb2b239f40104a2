//! Leader election: only one replica writes. The Lease has the format of Go's clients, so that this operator and the Go
//! operator never write at the same time.
//!
//! There are never two writers. A replica takes the Lease of another replica only after the Lease stayed unchanged for
//! the holder's lease duration. The replica measures this time on its own clock. The write that takes over the Lease
//! names the version that the replica saw. So if several replicas try, only one succeeds. The holder measures the lease
//! duration from the moment before it sent its last renewal. The holder gives up the Lease before another replica may
//! take over. From then on, the [`Fence`] of the holder stops all new writes, and aborts the writes that have no answer
//! yet. No replica compares its clock with a time that another machine wrote.
//!
//! Losing the Lease is final: the caller must end the process. After the end of the process, a new process starts as a
//! waiting replica.

mod election;
mod fence;
mod identity;
mod lease;
mod lease_changes;
mod lease_guard;
mod record;
mod seat;
mod takeover;
#[cfg(test)]
mod tests;
mod timing;

pub use election::Election;
pub use fence::Fence;
pub use identity::identity;
use lease::API_SERVER_SILENT;
pub use lease::{LEASE, Lost, Standing};
pub use lease_guard::LeaseGuard;
pub use takeover::take_over;
pub use timing::{Timing, TimingError};
