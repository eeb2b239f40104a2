//! The way to the API server: where it is, who asks, and how every request is bounded and counted.
//!
//! Trying again is left to whoever asks: kube's own retries are off, because backoff is decided in one place.

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

pub use calls::{Answer, CallError, CallLayer, Calls};

/// Which cluster, as the user names it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// A kubeconfig; otherwise `$KUBECONFIG`, `~/.kube/config`, or the service account of the pod.
    pub kubeconfig: Option<PathBuf>,
    /// A context in it; otherwise its current one.
    pub context: Option<String>,
}

/// Why there is no way to an API server.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// A kubeconfig that cannot be used.
    #[error("{place}: {source}")]
    Kubeconfig {
        /// Which one.
        place: String,
        /// What is wrong.
        source: KubeconfigError,
    },
    /// Nothing says where the cluster is.
    #[error("no cluster: name one with --kubeconfig or KUBECONFIG, or run in a pod with a service account ({0})")]
    Nowhere(InferConfigError),
    /// Certificates or addresses that make no client.
    #[error("the client for {url} cannot be made: {source}")]
    Client {
        /// The API server.
        url: String,
        /// What is wrong.
        source: kube::Error,
    },
}

impl Place {
    /// Finds out where the API server is and who asks.
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

/// A client whose requests go through the layer.
pub fn connect(config: Config, layer: &CallLayer) -> Result<Client, ConnectError> {
    let url = config.cluster_url.to_string();
    let builder = ClientBuilder::try_from(config).map_err(|source| ConnectError::Client { url, source })?;
    Ok(builder.with_layer(layer).build())
}
