//! What the process tells about itself over HTTP: whether it lives, whether it is ready, what it has counted, and, to
//! callers on the same machine, why an object is as it is.
//!
//! Nothing here decides anything: readiness and explanations are asked of whoever has them, through [`Report`].

mod address;
mod connections;
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
use connections::{Bounds, answer};

/// An address that could not be had.
#[derive(Debug, thiserror::Error)]
#[error("--{flag} {address}: {source}")]
pub struct ServeError {
    flag: &'static str,
    address: BindAddress,
    source: io::Error,
}

/// What can be asked, each where its own flag says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pages {
    /// What the process has counted.
    Metrics,
    /// Whether it lives, and whether it is ready.
    Health,
    /// Why an object is as it is.
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

/// Listeners that do not answer yet, by the address that was asked for.
#[derive(Debug)]
pub struct Listeners(BTreeMap<BindAddress, Listening>);

#[derive(Debug)]
struct Listening {
    listener: TcpListener,
    pages: Vec<Pages>,
}

impl Listeners {
    /// Listens on all addresses; one may be that of several.
    ///
    /// What explains objects is for callers on this machine. Who is one shows in the address that is listened on, and not
    /// in the caller's own: sidecars deliver from a local one what comes from elsewhere.
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
                // Nobody asked for it, and the rest works without.
                Err(error) if pages == Pages::Debug && debug == LocalAddress::default() => {
                    let flag = pages.flag();
                    tracing::warn!(%address, %error, "objects are not explained: choose another --{flag}, or 0");
                }
                Err(source) => return Err(ServeError { flag: pages.flag(), address, source }),
            }
        }
        Ok(Self(open))
    }

    /// Where these are served, when they are.
    pub fn address(&self, pages: Pages) -> Option<SocketAddr> {
        let served = self.0.values().find(|listening| listening.pages.contains(&pages))?;
        served.listener.local_addr().ok()
    }

    /// Answers until `stop`, then finishes what was begun.
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
            servers.spawn(answer(listener, routes.fold(Router::new(), Router::merge), bounds, stop.clone()));
        }
        while servers.join_next().await.is_some() {}
    }
}
