//! The version of the API server, where that decides something: a newer one may have fields that this program does not know.

use std::sync::Arc;

use kaos_policy::gate::{self, Server};
use kube::Client;
use tokio::runtime::Handle;

/// Whether an API server may have fields that this program does not know.
pub(crate) async fn is_newer(client: &Client) -> Result<bool, kube::Error> {
    let told = client.apiserver_version().await?;
    Ok(gate::is_newer(&told.major, &told.minor))
}

/// An API server that may be asked from any thread.
pub(crate) type Asked = Arc<dyn Server + Send + Sync>;

/// A server that is asked each time, from threads that may wait: it can become newer while this program runs. One that does
/// not answer has the last word.
pub(crate) struct Asking {
    client: Client,
    runtime: Handle,
}

impl Asking {
    /// The server of a client; within a runtime.
    pub(crate) fn new(client: Client) -> Self {
        Self { client, runtime: Handle::current() }
    }
}

impl Server for Asking {
    fn is_newer(&self) -> bool {
        self.runtime.block_on(is_newer(&self.client)).unwrap_or(true)
    }
}
