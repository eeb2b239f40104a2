//! Handles the connections of callers, with limits for the duration and the number of connections. So idle callers cost
//! little, and do not block other callers.

use std::{
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use axum::Router;
use hyper::{
    server::conn::http1,
    service::{Service as _, service_fn},
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::replaced::{Open, RequestProgress, replaced};

/// The limits for callers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// The time that a caller has to send a request, counted from the start of the connection or from the previous
    /// answer.
    pub(super) asking: Duration,
    /// The maximum age of a connection. After this time, the server still answers a request in progress.
    pub(super) lifetime: Duration,
    /// The time that the last answer on a connection may take after the end of its lifetime, or during a shutdown.
    pub(super) ending: Duration,
    /// The maximum number of connections. Above the maximum, a new connection replaces an existing connection, see
    /// [`super::replaced`].
    pub(super) most: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            asking: Duration::from_secs(15),
            lifetime: Duration::from_mins(5),
            ending: Duration::from_secs(5),
            most: 128,
        }
    }
}

/// The delay after the system could not accept a connection.
const PAUSE: Duration = Duration::from_secs(1);

/// Answers requests until `stop` is cancelled. After the cancellation, completes the requests in progress.
pub(super) async fn answer(listener: TcpListener, routes: Router, bounds: Bounds, stop: CancellationToken) {
    let mut connections = JoinSet::new();
    let mut oldest_first: Vec<Open> = Vec::new();
    while let Some(accepted) = stop.run_until_cancelled(listener.accept()).await {
        let Ok((stream, address)) = accepted else {
            // The usual reason is that no file descriptor is free, so an immediate retry would fail too.
            sleep(PAUSE).await;
            continue;
        };
        while connections.try_join_next().is_some() {}
        oldest_first.retain(|connection| !connection.task.is_finished());
        if oldest_first.len() >= bounds.most {
            match replaced(&oldest_first) {
                Some(at) => oldest_first.remove(at).task.abort(),
                // Drop the new connection, because no open connection is idle. The caller may try again.
                None => continue,
            }
        }
        let stage = Arc::new(RequestProgress::default());
        let task = connections.spawn(connection(stream, routes.clone(), bounds, stop.clone(), Arc::clone(&stage)));
        oldest_first.push(Open { caller: address.ip().to_canonical(), stage, task });
    }
    while connections.join_next().await.is_some() {}
}

async fn connection(
    stream: TcpStream,
    routes: Router,
    bounds: Bounds,
    stop: CancellationToken,
    stage: Arc<RequestProgress>,
) {
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(bounds.asking);
    let service = TowerToHyperService::new(routes);
    let observed = service_fn(|request| {
        let answering = stage.answering();
        let answer = service.call(request);
        async move {
            let answer = answer.await;
            drop(answering);
            answer
        }
    });
    let mut connection = pin!(server.serve_connection(TokioIo::new(stream), observed));
    // Ignore an error of one connection: the other connections continue.
    tokio::select! {
        _ = connection.as_mut() => return,
        () = stop.cancelled() => {}
        () = sleep(bounds.lifetime) => {}
    }
    Pin::as_mut(&mut connection).graceful_shutdown();
    drop(timeout(bounds.ending, connection).await);
}
