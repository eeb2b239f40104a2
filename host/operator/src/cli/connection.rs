//! Which cluster a verb works on.

use std::path::PathBuf;

use clap::Args;

use crate::client::Place;

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
