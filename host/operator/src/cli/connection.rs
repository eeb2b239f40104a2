//! Which cluster a verb works on.

use std::{path::PathBuf, sync::Arc, time::Duration};

use clap::Args;
use kube::Client;

use crate::{
    client::{self, CallLayer, Place},
    lead::Fence,
    metrics::Metrics,
    telling::is_unanswered,
};

/// How long one request of a verb may take.
const DEADLINE: Duration = Duration::from_secs(30);

/// Flags that name a cluster.
#[derive(Debug, Clone, Args)]
pub(super) struct Connection {
    /// Kubeconfig; otherwise $KUBECONFIG, ~/.kube/config, or the pod's service account
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context in the kubeconfig; otherwise its current one
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

impl Connection {
    /// The place that they name.
    pub(super) fn place(self) -> Place {
        let Self { kubeconfig, context } = self;
        Place { kubeconfig, context }
    }
}

/// Does something on a cluster, and waits for it.
pub(super) fn on_cluster<T>(
    connection: Connection,
    work: impl AsyncFnOnce(Client) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let layer = CallLayer { deadline: DEADLINE, fence: Fence::open(), metrics: Arc::new(Metrics::new()) };
        let config = connection.place().config().await?;
        let url = config.cluster_url.to_string();
        work(client::connect(config, &layer)?).await.map_err(|error| {
            let is_unanswered = is_unanswered(error.as_ref());
            if is_unanswered { error.context(format!("the API server at {url} does not answer")) } else { error }
        })
    })
}
