//! What the process tells about itself over HTTP: whether it lives, whether it is ready, what it has counted, and, to
//! callers on the same machine, why an object is as it is.
//!
//! Nothing here decides anything: readiness and explanations are asked of whoever has them, through [`Report`].

mod address;
mod routes;
#[cfg(test)]
mod tests;

use std::{io, net::SocketAddr, sync::Arc};

use axum::Router;
use serde_json::Value;
use tokio::{net::TcpListener, task::JoinSet};
use tokio_util::sync::CancellationToken;

pub use address::{AddressError, BindAddress};

use crate::metrics::Metrics;

/// What is told.
pub trait Report: Send + Sync + 'static {
    /// Whether everything is as it should be, with a word about it; otherwise what is missing, a line each.
    fn ready(&self) -> Result<String, Vec<String>>;

    /// What is known of an object: its last inputs, plan and decisions.
    fn explain(&self, kind: &str, namespace: &str, name: &str) -> Option<Value>;
}

/// An address that could not be had.
#[derive(Debug, thiserror::Error)]
#[error("--{flag} {address}: {source}")]
pub struct ServeError {
    flag: &'static str,
    address: BindAddress,
    source: io::Error,
}

/// Listeners that do not answer yet.
#[derive(Debug)]
pub struct Listeners {
    metrics: Option<TcpListener>,
    health: Option<TcpListener>,
    shared: bool,
}

impl Listeners {
    /// Listens on both addresses; one for both is fine.
    pub async fn bind(metrics: BindAddress, health: BindAddress) -> Result<Self, ServeError> {
        let bind = async |flag, address: BindAddress| {
            address.bind().await.map_err(|source| ServeError { flag, address, source })
        };
        let shared = metrics == health;
        Ok(Self {
            metrics: bind("metrics-bind-address", metrics).await?,
            health: bind("health-probe-bind-address", if shared { BindAddress::Off } else { health }).await?,
            shared,
        })
    }

    /// Where metrics are served, when they are.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics.as_ref()?.local_addr().ok()
    }

    /// Where health is served, when it is.
    pub fn health_address(&self) -> Option<SocketAddr> {
        if self.shared { self.metrics_address() } else { self.health.as_ref()?.local_addr().ok() }
    }

    /// Answers until `stop`, then finishes what was begun.
    pub async fn serve(self, metrics: Arc<Metrics>, report: Arc<dyn Report>, stop: CancellationToken) {
        let Self { metrics: counted, health, shared } = self;
        let health_routes = routes::health(Arc::clone(&report));
        let metrics_routes = routes::metrics(metrics);
        let (first, second) =
            if shared { (metrics_routes.merge(health_routes), Router::new()) } else { (metrics_routes, health_routes) };
        let mut servers = JoinSet::new();
        for (listener, routes) in [(counted, first), (health, second)] {
            let Some(listener) = listener else { continue };
            let local = listener.local_addr().is_ok_and(|address| address.ip().is_loopback());
            let routes = if local { routes.merge(routes::debug(Arc::clone(&report))) } else { routes };
            servers.spawn(answer(listener, routes, stop.clone()));
        }
        while servers.join_next().await.is_some() {}
    }
}

async fn answer(listener: TcpListener, routes: Router, stop: CancellationToken) {
    let stopped = async move { stop.cancelled().await };
    // Errors of single connections are no errors of the server, and it has no others.
    let _served = axum::serve(listener, routes).with_graceful_shutdown(stopped).await;
}
