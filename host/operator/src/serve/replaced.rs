//! Chooses the connection that a new connection replaces, if the server has the maximum number of connections.
//!
//! A flood of connections from one caller must not close the connection of a probe. So the caller with the most
//! connections loses one connection. Among the connections of this caller, the server closes the oldest connection that
//! never had a request. If each of them had a request, the server closes the oldest connection that is idle after an
//! answer. The server never closes a connection while it answers a request on it.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use tokio::task::AbortHandle;

/// The numbers of requests and answers on a connection.
#[derive(Debug, Default)]
pub(super) struct RequestProgress {
    /// The number of requests that arrived completely.
    asked: AtomicU64,
    /// The number of answered requests.
    answered: AtomicU64,
}

impl RequestProgress {
    /// Counts a new request. The request counts as answered when the returned value is dropped.
    pub(super) fn answering(self: &Arc<Self>) -> Answering {
        self.asked.fetch_add(1, Relaxed);
        Answering(Arc::clone(self))
    }

    fn is_answering(&self) -> bool {
        self.asked.load(Relaxed) > self.answered.load(Relaxed)
    }
}

/// A request that the server is answering.
#[derive(Debug)]
pub(super) struct Answering(Arc<RequestProgress>);

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.answered.fetch_add(1, Relaxed);
    }
}

/// An open connection.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) caller: IpAddr,
    pub(super) stage: Arc<RequestProgress>,
    pub(super) task: AbortHandle,
}

/// Returns the position of the connection to close. Returns `None` if the server is answering a request on every
/// connection.
pub(super) fn replaced(oldest_first: &[Open]) -> Option<usize> {
    let mut of_caller: BTreeMap<IpAddr, usize> = BTreeMap::new();
    for open in oldest_first {
        *of_caller.entry(open.caller).or_default() += 1;
    }
    let idle = oldest_first.iter().enumerate().filter(|(_, open)| !open.stage.is_answering());
    let rank = |(at, open): &(usize, &Open)| {
        let connections = of_caller.get(&open.caller).copied().unwrap_or_default();
        (std::cmp::Reverse(connections), open.stage.asked.load(Relaxed) > 0, *at)
    };
    idle.min_by_key(rank).map(|(at, _)| at)
}
