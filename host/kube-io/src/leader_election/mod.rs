//! Leader election: only one replica writes. The Lease has the format of Go's clients, so that the Go operator and this
//! one take turns.
//!
//! There are never two writers. A replica takes a Lease over only after it stayed unchanged, on the replica's own
//! clock, for the holder's lease duration. The takeover updates exactly the version that the replica saw, so only one
//! of several replicas succeeds. The holder counts from the time before its renewal request, and gives up earlier. From
//! then on its [`Fence`] lets no write through and aborts the writes in progress. No clock is ever compared with a time
//! that another machine wrote.
//!
//! Losing the Lease is final: the process ends and starts again as a waiting replica. The caller takes care of that.

mod election;
mod fence;
mod identity;
mod lease;
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
