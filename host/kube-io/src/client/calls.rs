//! The client layer for every request: deadline, fence, metrics, user agent, and escaped bodies.

use std::{
    future::{self, Future},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, header::USER_AGENT};
use http_body::{Body as HttpBody, Frame, SizeHint};
use kube::client::Body;
use tokio::time::{Instant, Sleep};
use tower::{BoxError, Layer, Service};

use super::{apply_body, route::Route, throttled};
use crate::{leader_election::Fence, metrics::IoMetrics};

/// The operator's user agent, with its version.
const USER_AGENT_VALUE: &str = concat!("kaos-operator/", env!("CARGO_PKG_VERSION"));

/// The reason why the operator itself ended a request, or did not send it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The API server did not answer before the deadline.
    #[error("no answer to {verb} {resource} within {}s", deadline.as_secs_f64())]
    Late {
        /// The verb of the request.
        verb: &'static str,
        /// The resource of the request.
        resource: String,
        /// The time limit.
        deadline: Duration,
    },
    /// The client did not send a write, because this process does not hold the Lease.
    #[error("{verb} {resource} was not sent: this process does not hold the lease")]
    Fenced {
        /// The verb of the request.
        verb: &'static str,
        /// The resource of the request.
        resource: String,
    },
}

/// Wraps a service in [`Calls`].
#[derive(Debug, Clone)]
pub struct CallLayer {
    /// Maximum time for a request and the body of its answer. For a watch or a followed log, the maximum
    /// time until the answer begins.
    pub deadline: Duration,
    /// Blocks writes while the fence is closed.
    pub fence: Fence,
    /// Counts the requests.
    pub metrics: Arc<dyn IoMetrics>,
}

impl CallLayer {
    /// Wraps a service.
    pub fn around<S>(&self, inner: S) -> Calls<S> {
        Calls { layer: self.clone(), inner }
    }
}

impl<S> Layer<S> for CallLayer {
    type Service = Calls<S>;

    fn layer(&self, inner: S) -> Calls<S> {
        self.around(inner)
    }
}

/// A service with a deadline, a fence and metrics.
#[derive(Debug, Clone)]
pub struct Calls<S> {
    layer: CallLayer,
    inner: S,
}

impl<S, B> Service<Request<Body>> for Calls<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
    B: HttpBody<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<BoundedBody<B>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let route = Route::of(request.method(), request.uri());
        let CallLayer { deadline, fence, metrics } = self.layer.clone();
        let Route { verb, ref resource, .. } = route;
        let late = CallError::Late { verb, resource: resource.clone(), deadline };
        let fenced = CallError::Fenced { verb, resource: resource.clone() };
        if route.writes() && !fence.is_open() {
            return Box::pin(future::ready(Err(fenced.into())));
        }
        request.headers_mut().insert(USER_AGENT, HeaderValue::from_static(USER_AGENT_VALUE));
        let (writes, streams) = (route.writes(), route.streams);
        let mut record = Record { metrics, route, started: Instant::now(), code: "cancelled".to_owned() };
        let answer = self.inner.call(apply_body::escaped(request));
        Box::pin(async move {
            let due = record.started + deadline;
            let closed = async { if writes { fence.closed().await } else { future::pending().await } };
            let response = tokio::select! {
                biased;
                response = answer => response.map_err(|error| { record.ends_as("unreachable"); error.into() })?,
                () = closed => { record.ends_as("fenced"); return Err(fenced.into()) }
                () = tokio::time::sleep_until(due) => { record.ends_as("timeout"); return Err(late.into()) }
            };
            record.ends_as(response.status().as_str());
            let bound = (!streams).then(|| Bound { sleep: Box::pin(tokio::time::sleep_until(due)), late, record });
            let (mut parts, body) = response.into_parts();
            let instead = throttled::status_of(parts.status, &parts.headers);
            if instead.is_some() {
                throttled::retell(&mut parts.headers);
            }
            let replaced = instead.is_some();
            Ok(Response::from_parts(parts, BoundedBody { body, bound, instead, replaced }))
        })
    }
}

/// Counts a request when the request ends, also if it fails or is cancelled.
#[derive(Debug)]
struct Record {
    metrics: Arc<dyn IoMetrics>,
    route: Route,
    started: Instant,
    code: String,
}

impl Record {
    fn ends_as(&mut self, code: &str) {
        code.clone_into(&mut self.code);
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let Route { verb, group, resource, .. } = &self.route;
        self.metrics.api_call(verb, group, resource, &self.code, self.started.elapsed());
    }
}

#[derive(Debug)]
struct Bound {
    sleep: Pin<Box<Sleep>>,
    late: CallError,
    record: Record,
}

/// The body of an answer. The body must arrive before the deadline, unless it is the body of a watch or of a followed
/// log.
#[derive(Debug)]
pub struct BoundedBody<B> {
    body: B,
    bound: Option<Bound>,
    /// The text that replaces the body. After the client has read the text, this field is `None`, and `replaced` stays
    /// true.
    instead: Option<Bytes>,
    replaced: bool,
}

impl<B> HttpBody for BoundedBody<B>
where
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.replaced {
            return Poll::Ready(self.instead.take().map(|told| Ok(Frame::data(told))));
        }
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let Some(Bound { sleep, late, record }) = &mut self.bound else { return Poll::Pending };
        sleep.as_mut().poll(context).map(|()| {
            record.ends_as("timeout");
            Some(Err(late.clone().into()))
        })
    }

    fn size_hint(&self) -> SizeHint {
        match &self.instead {
            Some(told) => SizeHint::with_exact(u64::try_from(told.len()).unwrap_or(u64::MAX)),
            None if self.replaced => SizeHint::with_exact(0),
            None => self.body.size_hint(),
        }
    }

    fn is_end_stream(&self) -> bool {
        if self.replaced { self.instead.is_none() } else { self.body.is_end_stream() }
    }
}
