//! The cluster as a tower service, for clients in the same process.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Request, Response, request::Parts};
use tower_service::Service;

use super::{
    answer::error,
    body::{self, Body, Disconnected},
    respond::respond,
};
use crate::inner::Inner;

/// A service that connects a client of this process to the cluster without a socket:
/// `kube::Client::new(cluster.service(), "default")`.
#[derive(Clone)]
pub struct ClusterService {
    cluster: Arc<Inner>,
    user: Option<String>,
}

impl fmt::Debug for ClusterService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterService").field("user", &self.user).finish_non_exhaustive()
    }
}

impl ClusterService {
    pub(crate) fn new(cluster: Arc<Inner>) -> Self {
        Self { cluster, user: None }
    }

    /// Answers one request.
    pub(super) async fn respond(self, parts: Parts, body: Bytes) -> Result<Response<Body>, Disconnected> {
        respond(&self.cluster, parts, body, self.user).await
    }

    /// Returns a service for requests that come from the user `name`.
    #[must_use]
    pub fn as_user(&self, name: &str) -> Self {
        Self { cluster: Arc::clone(&self.cluster), user: Some(name.to_owned()) }
    }
}

impl<B> Service<Request<B>> for ClusterService
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = Box<dyn std::error::Error + Send + Sync>;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            match body::read(body).await? {
                Some(body) => service.respond(parts, body).await.map_err(Into::into),
                None => Ok(error(&body::too_large())),
            }
        })
    }
}
