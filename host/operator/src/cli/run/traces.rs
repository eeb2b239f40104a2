//! Traces: sends the spans of each pass and of its steps to a collector over OTLP (protobuf over HTTP).
//!
//! The standard environment variables of OpenTelemetry configure the traces. Unlike most programs, the operator sends
//! traces only if these variables name a collector.

use std::{env, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::{
    client::legacy::{Client, connect::Connect},
    rt::TokioExecutor,
};
use kube::client::ConfigExt as _;
use opentelemetry::{KeyValue, trace::TracerProvider as _};
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{
    ExporterBuildError, OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, SpanExporter,
    WithHttpConfig as _,
};
use opentelemetry_sdk::{Resource, trace::SdkTracerProvider};
use tokio::runtime::Handle;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::{
    Layer as _,
    filter::{FilterExt as _, Targets, filter_fn},
};

use super::logs::SpanLayer;
use crate::trace;

/// Default service name of the spans.
const SERVICE: &str = "kaos-operator";
/// Time limit for an answer of the collector.
const PATIENCE: Duration = Duration::from_secs(10);
/// Size limit for an answer of the collector.
const MAX_ANSWER_BYTES: usize = 1 << 20;

/// The error if traces cannot be set up.
#[derive(Debug, thiserror::Error)]
pub(super) enum TraceError {
    #[error("cannot use OpenTelemetry's environment variables: {0}")]
    Environment(#[from] ExporterBuildError),
    #[error("cannot load the certificates for the collector of traces: {0}")]
    Tls(#[source] Box<kube::Error>),
}

/// Sends traces.
pub(super) struct Traces(SdkTracerProvider);

impl Traces {
    /// Reads the environment. Returns `None` if the environment names no collector.
    pub(super) fn of_environment(runtime: &Handle) -> Result<Option<Self>, TraceError> {
        let says = |name: &str, what: &str| env::var(name).is_ok_and(|value| value.eq_ignore_ascii_case(what));
        let named = |name: &str| env::var(name).is_ok_and(|value| !value.is_empty());
        let is_off = says("OTEL_SDK_DISABLED", "true") || says("OTEL_TRACES_EXPORTER", "none");
        if is_off || ![OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, OTEL_EXPORTER_OTLP_ENDPOINT].into_iter().any(named) {
            return Ok(None);
        }
        let exporter = SpanExporter::builder().with_http().with_http_client(sender(runtime)?).build()?;
        let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
        let mut resource = Resource::builder().with_attribute(version);
        let attributes = env::var("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
        if !named("OTEL_SERVICE_NAME") && !attributes.contains("service.name=") {
            resource = resource.with_service_name(SERVICE);
        }
        let provider = SdkTracerProvider::builder().with_resource(resource.build()).with_batch_exporter(exporter);
        Ok(Some(Self(provider.build())))
    }

    /// Returns the layer that collects the spans of [`trace`], with the operator's log events. Leaves out events of
    /// libraries, and events below the level `info`.
    pub(super) fn layer(&self) -> SpanLayer {
        let layer = tracing_opentelemetry::layer().with_tracer(self.0.tracer(SERVICE));
        let layer = layer.with_location(false).with_threads(false).with_target(false).with_tracked_inactivity(false);
        // No code reads OpenTelemetry's current context: the spans of `tracing` have their parents. So keep the layer
        // from setting this context on each poll of a pass.
        let layer = layer.with_context_activation(false);
        let of_operator = Targets::new().with_target("kaos_operator", LevelFilter::INFO);
        let steps = filter_fn(|metadata| !metadata.is_span() || metadata.target() == trace::TARGET);
        Box::new(layer.with_filter(of_operator.and(steps)))
    }

    /// Sends the remaining spans. Blocks the thread. The runtime must keep running until this function returns.
    pub(super) fn finish(self) {
        if let Err(error) = self.0.shutdown() {
            tracing::warn!("the last traces did not reach the collector: {error}");
        }
    }
}

/// Sends requests to the collector.
#[derive(Debug)]
struct Sender<C> {
    client: Client<C, Full<Bytes>>,
    runtime: Handle,
}

/// Creates the HTTP client. For `https` endpoints, the client trusts the certificate authorities of the machine.
fn sender(runtime: &Handle) -> Result<impl HttpClient + use<>, TraceError> {
    let plain = kube::Config::new(http::Uri::from_static("https://collector"));
    let connector = plain.rustls_https_connector().map_err(|error| TraceError::Tls(Box::new(error)))?;
    Ok(Sender { client: Client::builder(TokioExecutor::new()).build(connector), runtime: runtime.clone() })
}

#[async_trait]
impl<C> HttpClient for Sender<C>
where
    C: Connect + Clone + std::fmt::Debug + Send + Sync + 'static,
{
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let answer = self.client.request(request.map(Full::new));
        let whole = async {
            let (head, body) = answer.await?.into_parts();
            Ok(Response::from_parts(head, Limited::new(body, MAX_ANSWER_BYTES).collect().await?.to_bytes()))
        };
        // The exporter calls this function from a thread without a runtime. So run the request and its timer on the
        // process's runtime.
        self.runtime.spawn(async { tokio::time::timeout(PATIENCE, whole).await }).await??
    }
}
