//! Connections of callers: how long each may take, and how many there may be. Callers that say nothing cost nothing for long,
//! and keep no other from being answered.

use std::{
    collections::VecDeque,
    pin::{Pin, pin},
    time::Duration,
};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    task::{AbortHandle, JoinSet},
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

/// What callers may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// How long a caller may take to ask, for the first time and each time after an answer.
    pub(super) asking: Duration,
    /// How long a connection may last. What was asked by then is still answered.
    pub(super) lifetime: Duration,
    /// How long an answer may take after that, or after the process was told to stop.
    pub(super) ending: Duration,
    /// Connections at a time. A new one takes the place of the oldest.
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

/// How long nobody is let in after the system could not open a connection.
const PAUSE: Duration = Duration::from_secs(1);

/// Answers until `stop`, then finishes what was begun.
pub(super) async fn answer(listener: TcpListener, routes: Router, bounds: Bounds, stop: CancellationToken) {
    let mut connections = JoinSet::new();
    let mut oldest_first: VecDeque<AbortHandle> = VecDeque::new();
    while let Some(accepted) = stop.run_until_cancelled(listener.accept()).await {
        let Ok((stream, _)) = accepted else {
            // Mostly there are no more file descriptors, and trying at once finds none either.
            sleep(PAUSE).await;
            continue;
        };
        while connections.try_join_next().is_some() {}
        oldest_first.retain(|connection| !connection.is_finished());
        if oldest_first.len() >= bounds.most
            && let Some(oldest) = oldest_first.pop_front()
        {
            oldest.abort();
        }
        oldest_first.push_back(connections.spawn(connection(stream, routes.clone(), bounds, stop.clone())));
    }
    while connections.join_next().await.is_some() {}
}

async fn connection(stream: TcpStream, routes: Router, bounds: Bounds, stop: CancellationToken) {
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(bounds.asking);
    let mut connection = pin!(server.serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes)));
    // Errors of single connections are no errors of the server.
    tokio::select! {
        _ = connection.as_mut() => return,
        () = stop.cancelled() => {}
        () = sleep(bounds.lifetime) => {}
    }
    Pin::as_mut(&mut connection).graceful_shutdown();
    drop(timeout(bounds.ending, connection).await);
}
