//! The version of the API server. A newer server may have fields that this program does not know.

use std::sync::Arc;

use kaos_policy::gate::{self, Server};
use kube::Client;
use tokio::runtime::Handle;

use crate::telling::told;

/// Whether an API server may have fields that this program does not know.
pub(crate) async fn is_newer(client: &Client) -> Result<bool, kube::Error> {
    let told = client.apiserver_version().await?;
    Ok(gate::is_newer(&told.major, &told.minor))
}

/// A server check that any thread may call.
pub(crate) type Asked = Arc<dyn Server + Send + Sync>;

/// A server that is asked each time, from threads that may wait: it can become newer while this program runs. One that does
/// not answer is neither newer nor older: what depends on that waits.
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
    fn is_newer(&self) -> Result<bool, String> {
        self.runtime.block_on(is_newer(&self.client)).map_err(|error| told(&error))
    }
}
