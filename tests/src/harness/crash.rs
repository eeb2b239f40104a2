//! Ends operators at a chosen write, the crash point. The connection between an operator and the API server stops this
//! write: the operator gets no response, and the test decides whether the API server carries out the write. The test
//! waits until an operator reaches the crash point, and then ends this operator.

use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use http::{Method, Request, Response};
use kaos_cluster::{Body, ClusterService};
use kube::client::Body as Sent;
use tokio::sync::Notify;
use tower_service::Service;

/// The crash point of a world. All clones of this value are the same crash point.
#[derive(Debug, Clone, Default)]
pub struct CrashPoint(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    planned: Mutex<Option<Planned>>,
    /// The user names of those operators that reached the crash point or ended by themselves.
    ended: Mutex<Vec<String>>,
    reached: Notify,
}

#[derive(Debug, Clone, Copy)]
struct Planned {
    writes: u32,
    after: bool,
}

impl CrashPoint {
    /// Plans a crash at the write that follows the next `writes` writes. This write gets no response. If `after` is
    /// true, the API server carries out this write.
    pub fn plan(&self, writes: u32, after: bool) {
        *self.planned() = Some(Planned { writes, after });
    }

    /// Returns whether a planned crash has not happened yet.
    pub fn is_planned(&self) -> bool {
        self.planned().is_some()
    }

    /// Cancels the planned crash.
    pub fn clear(&self) {
        *self.planned() = None;
    }

    /// Waits until an operator reaches the crash point or ends by itself. Returns the operator's user name.
    pub async fn reached(&self) -> String {
        loop {
            if let Some(user) = self.ended().pop() {
                return user;
            }
            self.0.reached.notified().await;
        }
    }

    /// Records that an operator reached the crash point or ended.
    pub(super) fn reach(&self, user: &str) {
        self.ended().push(user.to_owned());
        self.0.reached.notify_one();
    }

    fn ended(&self) -> MutexGuard<'_, Vec<String>> {
        self.0.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn planned(&self) -> MutexGuard<'_, Option<Planned>> {
        self.0.planned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a write. If the write is at the crash point, returns whether the API server must carry out this write.
    /// Returns `None` for all other writes.
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

    /// Returns a connection with this crash point, for the given user.
    pub(super) fn on(&self, service: &ClusterService, user: &str) -> Mortal {
        Mortal { service: service.as_user(user), point: self.clone(), user: user.into() }
    }
}

/// An operator's connection to the API server, which stops at the crash point.
#[derive(Debug, Clone)]
pub(super) struct Mortal {
    service: ClusterService,
    point: CrashPoint,
    user: Arc<str>,
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
        let (point, user) = (self.point.clone(), Arc::clone(&self.user));
        Box::pin(async move {
            if after {
                drop(answer.await);
            }
            point.reach(&user);
            pending().await
        })
    }
}
