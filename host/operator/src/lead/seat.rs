//! One replica's part in the election: what it needs to read, take and keep the Lease.

use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use tokio::sync::watch;

use super::{Fence, Standing, Timing};

/// A replica's way to the Lease.
#[derive(Debug)]
pub(super) struct Seat {
    pub(super) api: Api<Lease>,
    pub(super) identity: String,
    pub(super) timing: Timing,
    pub(super) fence: Fence,
    /// What is known of the Lease, for whoever watches.
    pub(super) standing: watch::Sender<Standing>,
}
