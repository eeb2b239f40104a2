//! The client of the API server: its address, its credentials, and the limits and metrics of every request.
//!
//! The caller decides about retries. The library kube does not retry on its own, because each request would then have
//! two backoffs.

mod apply_body;
mod calls;
mod route;
#[cfg(test)]
mod tests;
mod throttled;

use std::path::PathBuf;

use kube::{
    Client, Config,
    client::ClientBuilder,
    config::{InferConfigError, KubeConfigOptions, Kubeconfig, KubeconfigError},
};

pub use calls::{BoundedBody, CallError, CallLayer, Calls};

/// The kubeconfig and the context with which the user chooses a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterChoice {
    /// The path of a kubeconfig. `None` selects `$KUBECONFIG`, `~/.kube/config`, or the service account of the pod.
    pub kubeconfig: Option<PathBuf>,
    /// A context in the kubeconfig. `None` selects the current context.
    pub context: Option<String>,
}

/// The reason why no client could be created.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The kubeconfig is unusable.
    #[error("{place}: {source}")]
    Kubeconfig {
        /// The path of the kubeconfig.
        place: String,
        /// The error.
        source: KubeconfigError,
    },
    /// Neither the kubeconfig nor the environment of a pod names a cluster.
    #[error(
        "no cluster: name a kubeconfig with --kubeconfig or KUBECONFIG, or run in a pod with a service account ({0})"
    )]
    Nowhere(InferConfigError),
    /// The client cannot use the certificates or the address.
    #[error("could not create a client for {url}: {source}")]
    Client {
        /// The address of the API server.
        url: String,
        /// The error.
        source: kube::Error,
    },
}

impl ClusterChoice {
    /// Finds the address of the API server and the credentials.
    pub async fn config(&self) -> Result<Config, ConnectError> {
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        let mut config = match &self.kubeconfig {
            Some(path) => {
                let broken = |source| ConnectError::Kubeconfig { place: path.display().to_string(), source };
                let kubeconfig = Kubeconfig::read_from(path).map_err(broken)?;
                Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(broken)?
            }
            None if self.context.is_some() => {
                let place = "the kubeconfig".to_owned();
                let broken = |source| ConnectError::Kubeconfig { place, source };
                Config::from_kubeconfig(&options).await.map_err(broken)?
            }
            None => Config::infer().await.map_err(ConnectError::Nowhere)?,
        };
        config.default_retry = false;
        Ok(config)
    }
}

/// Creates a client that sends all requests through `layer`.
pub fn connect(config: Config, layer: &CallLayer) -> Result<Client, ConnectError> {
    let url = config.cluster_url.to_string();
    let builder = ClientBuilder::try_from(config).map_err(|source| ConnectError::Client { url, source })?;
    Ok(builder.with_layer(layer).build())
}
