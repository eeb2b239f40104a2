//! The operator's HTTP server. It answers requests for liveness, readiness and metrics. For callers on the same
//! machine, it also has debug pages, which explain objects and show recorded decisions.
//!
//! The operator provides readiness and the debug pages through [`Report`].

mod address;
mod connections;
mod replaced;
mod report;
mod routes;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, io, net::SocketAddr, sync::Arc};

use axum::Router;
use tokio::{net::TcpListener, task::JoinSet};
use tokio_util::sync::CancellationToken;

pub use address::{AddressError, BindAddress, LocalAddress, LocalAddressError};
pub use report::Report;

use crate::metrics::Metrics;
use connections::Bounds;

/// The error for an address that the process cannot listen on.
#[derive(Debug, thiserror::Error)]
#[error("--{flag} {address}: {source}")]
pub struct ServeError {
    flag: &'static str,
    address: BindAddress,
    source: io::Error,
}

/// A group of pages. Each group has a flag for the address at which the server answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pages {
    /// The metrics.
    Metrics,
    /// Liveness and readiness.
    Health,
    /// The explanations of objects, and the recorded decisions.
    Debug,
}

impl Pages {
    fn flag(self) -> &'static str {
        match self {
            Self::Metrics => "metrics-bind-address",
            Self::Health => "health-probe-bind-address",
            Self::Debug => "debug-bind-address",
        }
    }

    fn routes(self, metrics: &Arc<Metrics>, report: &Arc<dyn Report>) -> Router {
        match self {
            Self::Metrics => routes::metrics(Arc::clone(metrics)),
            Self::Health => routes::health(Arc::clone(report)),
            Self::Debug => routes::debug(Arc::clone(report)),
        }
    }
}

/// Answers requests with `routes` until `stop` is cancelled. The limits for callers are the same as for the operator's
/// pages, but a connection has no maximum age, because a browser receives updates of a page over one connection.
#[cfg(feature = "console")]
pub(crate) async fn answer_for_long(listener: TcpListener, routes: Router, stop: CancellationToken) {
    connections::answer(listener, routes, Bounds { lifetime: std::time::Duration::MAX, ..Bounds::default() }, stop)
        .await;
}

/// Open listeners that do not answer yet, by the requested address.
#[derive(Debug)]
pub struct Listeners(BTreeMap<BindAddress, Listening>);

#[derive(Debug)]
struct Listening {
    listener: TcpListener,
    pages: Vec<Pages>,
}

impl Listeners {
    /// Listens on all addresses. Several groups of pages may share an address.
    ///
    /// The debug pages are only for callers on this machine, so the server serves them only on a loopback address. A
    /// check of the caller's address would not be enough, because sidecars forward remote requests from a local
    /// address.
    pub async fn bind(metrics: BindAddress, health: BindAddress, debug: LocalAddress) -> Result<Self, ServeError> {
        let mut open: BTreeMap<BindAddress, Listening> = BTreeMap::new();
        for (pages, address) in [(Pages::Metrics, metrics), (Pages::Health, health), (Pages::Debug, debug.into())] {
            if let Some(shared) = open.get_mut(&address) {
                shared.pages.push(pages);
                continue;
            }
            match address.bind().await {
                Ok(Some(listener)) => drop(open.insert(address, Listening { listener, pages: vec![pages] })),
                Ok(None) => {}
                // Only log the error, because the address is the default, and the operator works without these pages.
                Err(error) if pages == Pages::Debug && debug == LocalAddress::default() => {
                    let flag = pages.flag();
                    tracing::warn!(%address, %error, "cannot serve /debug/objects: choose another --{flag}, or 0");
                }
                Err(source) => return Err(ServeError { flag: pages.flag(), address, source }),
            }
        }
        Ok(Self(open))
    }

    /// Returns the address of these pages; `None` if the server does not serve these pages.
    pub fn address(&self, pages: Pages) -> Option<SocketAddr> {
        let served = self.0.values().find(|listening| listening.pages.contains(&pages))?;
        served.listener.local_addr().ok()
    }

    /// Answers requests until `stop` is cancelled. After the cancellation, completes the requests in progress.
    pub async fn serve(self, metrics: Arc<Metrics>, report: Arc<dyn Report>, stop: CancellationToken) {
        self.serve_within(Bounds::default(), metrics, report, stop).await;
    }

    async fn serve_within(
        self,
        bounds: Bounds,
        metrics: Arc<Metrics>,
        report: Arc<dyn Report>,
        stop: CancellationToken,
    ) {
        let mut servers = JoinSet::new();
        for Listening { listener, pages } in self.0.into_values() {
            let routes = pages.into_iter().map(|pages| pages.routes(&metrics, &report));
            servers.spawn(connections::answer(
                listener,
                routes.fold(Router::new(), Router::merge),
                bounds,
                stop.clone(),
            ));
        }
        while servers.join_next().await.is_some() {}
    }
}
