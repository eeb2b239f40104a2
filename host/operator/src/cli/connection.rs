//! Connects a command to its cluster.

use std::{path::PathBuf, sync::Arc, time::Duration};

use clap::Args;
use kaos_policy::{failure::Failure, gate::LoadError};
use kube::Client;

use crate::{
    client::{self, CallLayer, ClusterChoice},
    error_text::is_unanswered,
    leader_election::Fence,
    metrics::Metrics,
    policies::Loader,
    server::is_newer,
};

/// Time limit for one request of a command.
const DEADLINE: Duration = Duration::from_secs(30);

/// Flags that name a cluster.
#[derive(Debug, Clone, Args)]
pub(super) struct Connection {
    /// Kubeconfig; default: $KUBECONFIG, ~/.kube/config, or the pod's service account
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context in the kubeconfig; default: its current context
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

impl Connection {
    /// Creates the connection from the values of the flags `--kubeconfig` and `--context`.
    #[cfg(feature = "completion")]
    pub(super) fn new(kubeconfig: Option<PathBuf>, context: Option<String>) -> Self {
        Self { kubeconfig, context }
    }

    /// Returns the kubeconfig and the context that the flags name.
    pub(super) fn place(self) -> ClusterChoice {
        let Self { kubeconfig, context } = self;
        ClusterChoice { kubeconfig, context }
    }
}

/// Runs a check of a package whose result can depend on the version of the API server. If the guard refuses the plan
/// for a sample, asks the server for its version. Repeats the check if the server is newer than this program, because a
/// newer server may know more fields. If the server does not report its version, adds to the error that the version is
/// unknown.
pub(super) fn for_server<T>(
    loader: &Loader,
    connection: &Connection,
    check: impl Fn() -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    check().or_else(|error| {
        let of_guard = |cause: &(dyn std::error::Error + 'static)| {
            matches!(cause.downcast_ref(), Some(LoadError::FailsSample { failure: Failure::Guard(_), .. }))
        };
        let may_be_newer = error.chain().any(of_guard);
        let asked = || on_cluster(connection.clone(), async |client| Ok(is_newer(&client).await?));
        if !may_be_newer {
            return Err(error);
        }
        match asked() {
            Ok(true) => {}
            Ok(false) => return Err(error),
            Err(why) => {
                return Err(error.context(format!(
                    "a newer API server may accept the refused plan, but the version of this API server is unknown: \
                     {why:#}"
                )));
            }
        }
        loader.expect_newer();
        check()
    })
}

/// Connects to the cluster, runs `work` and blocks until `work` ends.
pub(super) fn on_cluster<T>(
    connection: Connection,
    work: impl AsyncFnOnce(Client) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    on_cluster_in(&tokio::runtime::Builder::new_current_thread().enable_all().build()?, connection, work)
}

/// Like [`on_cluster`], with a thread for each processor. After `work`, does not wait for threads that still compute.
#[cfg(feature = "console")]
pub(super) fn on_cluster_with_threads<T>(
    connection: Connection,
    work: impl AsyncFnOnce(Client) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let done = on_cluster_in(&runtime, connection, work);
    runtime.shutdown_background();
    done
}

fn on_cluster_in<T>(
    runtime: &tokio::runtime::Runtime,
    connection: Connection,
    work: impl AsyncFnOnce(Client) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
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

/// Returns whether the API server answered with this status code. Ignores the reason in the answer, because the answer
/// for an unknown group is plain text without a reason.
pub(super) fn is_answered(error: &anyhow::Error, code: u16) -> bool {
    let answers = |cause: &(dyn std::error::Error + 'static)| matches!(cause.downcast_ref(), Some(kube::Error::Api(status)) if status.code == code);
    error.chain().any(answers)
}
