//! The state of one replica in the election.

use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use tokio::sync::watch;

use super::{Fence, Standing, Timing};

/// One replica's access to the Lease.
#[derive(Debug)]
pub(super) struct Seat {
    pub(super) api: Api<Lease>,
    pub(super) identity: String,
    pub(super) timing: Timing,
    pub(super) fence: Fence,
    /// Tells other code whether the replica holds the Lease.
    pub(super) standing: watch::Sender<Standing>,
}
