//! Crash points: a way to the API server on which an operator's n-th write gets no answer any more, before it had its effect
//! or after. Whoever waits for that ends the operator then.

use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use http::{Method, Request, Response};
use kaos_cluster::{Body, ClusterService};
use kube::client::Body as Sent;
use tokio::sync::Notify;
use tower_service::Service;

/// Where the operator of a world is to crash. Clones are the same point.
#[derive(Debug, Clone, Default)]
pub struct CrashPoint(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    planned: Mutex<Option<Planned>>,
    reached: Notify,
}

#[derive(Debug, Clone, Copy)]
struct Planned {
    writes: u32,
    after: bool,
}

impl CrashPoint {
    /// Plans a crash at the write that follows so many others, before or after its effect.
    pub fn plan(&self, writes: u32, after: bool) {
        *self.planned() = Some(Planned { writes, after });
    }

    /// No crash any more.
    pub fn clear(&self) {
        *self.planned() = None;
    }

    /// Waits until the operator has got there.
    pub async fn reached(&self) {
        self.0.reached.notified().await;
    }

    fn planned(&self) -> MutexGuard<'_, Option<Planned>> {
        self.0.planned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a write; whether this is the one, and whether it has its effect.
    fn step(&self) -> Option<bool> {
        let mut planned = self.planned();
        match planned.as_mut() {
            Some(Planned { writes: 0, after }) => {
                let after = *after;
                *planned = None;
                Some(after)
            }
            Some(Planned { writes, .. }) => {
                *writes -= 1;
                None
            }
            None => None,
        }
    }

    /// The way to the API server.
    pub(super) fn on(&self, service: ClusterService) -> Mortal {
        Mortal { service, point: self.clone() }
    }
}

/// A way that ends at a crash point.
#[derive(Debug, Clone)]
pub(super) struct Mortal {
    service: ClusterService,
    point: CrashPoint,
}

type Error = Box<dyn std::error::Error + Send + Sync>;

impl Service<Request<Sent>> for Mortal {
    type Response = Response<Body>;
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Service::<Request<Sent>>::poll_ready(&mut self.service, context)
    }

    fn call(&mut self, request: Request<Sent>) -> Self::Future {
        let crash = if request.method() == Method::GET { None } else { self.point.step() };
        let answer = self.service.call(request);
        let Some(after) = crash else { return answer };
        let point = self.point.clone();
        Box::pin(async move {
            if after {
                drop(answer.await);
            }
            point.0.reached.notify_one();
            pending().await
        })
    }
}
