//! The version of the API server. A newer server may have fields that this program does not know.

use std::sync::Arc;

use kaos_policy::gate::{self, Server};
use kube::Client;
use tokio::runtime::Handle;

/// Whether the API server may have fields that this program does not know.
pub(crate) async fn is_newer(client: &Client) -> Result<bool, kube::Error> {
    let told = client.apiserver_version().await?;
    Ok(gate::is_newer(&told.major, &told.minor))
}

/// A server check that any thread may call.
pub(crate) type Asked = Arc<dyn Server + Send + Sync>;

/// Asks the server each time, from threads that may block, because the server may be upgraded while this program runs.
/// A server that does not answer counts as newer.
pub(crate) struct Asking {
    client: Client,
    runtime: Handle,
}

impl Asking {
    /// Creates the check for a client's server. Call it within a runtime.
    pub(crate) fn new(client: Client) -> Self {
        Self { client, runtime: Handle::current() }
    }
}

impl Server for Asking {
    fn is_newer(&self) -> bool {
        self.runtime.block_on(is_newer(&self.client)).unwrap_or(true)
    }
}
