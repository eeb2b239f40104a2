//! An operator that runs in this process.

use std::sync::Arc;

use kaos_operator::catalogue::Catalogue;
use kaos_operator::metrics::Metrics;
use kaos_operator::operator::{OperatorError, Probe};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// A running operator.
pub struct Running {
    /// The operator's user name on the API server.
    pub(super) user: String,
    /// The operator's identity as holder of the Lease. Empty if the operator needs no Lease.
    pub(super) identity: String,
    /// The operator's health probe.
    pub probe: Probe,
    /// The operator's metrics.
    pub metrics: Arc<Metrics>,
    pub(super) catalogue: Arc<Catalogue>,
    pub(super) stop: CancellationToken,
    pub(super) task: JoinHandle<Result<(), OperatorError>>,
}
