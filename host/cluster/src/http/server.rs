//! Serves the cluster on a TCP port of this machine.

use std::{
    io,
    net::{IpAddr, SocketAddr},
};

use http::{Request, Response};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    net::TcpListener,
    task::{JoinHandle, JoinSet},
};

use super::{
    answer::error,
    body::{self, Body, Disconnected},
    host, kubeconfig,
    service::ClusterService,
};

/// A cluster that listens on a port. Dropping this handle stops the server.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Server {
    pub(crate) async fn start(service: ClusterService, address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok(Self { address, task: tokio::spawn(accept(listener, service)) })
    }

    /// Returns the listening address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the URL, `http://127.0.0.1:…`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns a kubeconfig, as YAML, for the user with this token.
    pub fn kubeconfig(&self, token: &str) -> String {
        kubeconfig::write(&self.url(), token)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, service: ClusterService) {
    // When this task ends, it drops this set, which ends all connections.
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else { continue };
                let service = service.clone();
                // Take the local address of the connection, because the listener can have the address for all
                // interfaces.
                let connected = stream.local_addr().ok().map(|address| address.ip().to_canonical());
                connections.spawn(async move {
                    let answer = service_fn(move |request| answer(service.clone(), connected, request));
                    // Ignore the error: a client may disconnect at any time.
                    let _gone = http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
                });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn answer(
    service: ClusterService,
    connected: Option<IpAddr>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Disconnected> {
    let (parts, body) = request.into_parts();
    if let Err(refusal) = host::check(&parts.headers, connected) {
        return Ok(error(&refusal));
    }
    match body::read(body).await.map_err(|_| Disconnected)? {
        Some(body) => service.respond(parts, body).await,
        None => Ok(error(&body::too_large())),
    }
}
