//! Traces: a span for each pass, sent to a collector over OTLP (protobuf over HTTP).
//!
//! All of it is said in the environment, in the variables that every program with OpenTelemetry reads. Other than most,
//! this one looks for no collector that nobody named.

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
use tracing_subscriber::{Layer as _, filter::Targets};

use super::logs::Beside;

/// What the spans are of, unless the environment names it.
const SERVICE: &str = "kaos-operator";
/// How long the collector may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// How much it may answer.
const MOST: usize = 1 << 20;

/// Traces that cannot be sent.
#[derive(Debug, thiserror::Error)]
pub(super) enum TraceError {
    #[error("the environment variables of OpenTelemetry: {0}")]
    Environment(#[from] ExporterBuildError),
    #[error("certificates for the collector of traces: {0}")]
    Tls(#[source] Box<kube::Error>),
}

/// What sends traces.
pub(super) struct Traces(SdkTracerProvider);

impl Traces {
    /// As the environment says; none where it names no collector.
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

    /// What takes the spans. Those of libraries are left out, and so is what is too detailed for logs.
    pub(super) fn layer(&self) -> Beside {
        let layer = tracing_opentelemetry::layer().with_tracer(self.0.tracer(SERVICE));
        let layer = layer.with_location(false).with_threads(false).with_tracked_inactivity(false);
        Box::new(layer.with_filter(Targets::new().with_target("kaos_operator", LevelFilter::INFO)))
    }

    /// Sends what is left. Blocks the thread; the runtime has to go on meanwhile.
    pub(super) fn finish(self) {
        if let Err(error) = self.0.shutdown() {
            tracing::warn!("the last traces did not reach the collector: {error}");
        }
    }
}

/// What carries requests to the collector.
#[derive(Debug)]
struct Sender<C> {
    client: Client<C, Full<Bytes>>,
    runtime: Handle,
}

/// Over TLS where the endpoint says `https`, with the authorities that the machine trusts.
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
            Ok(Response::from_parts(head, Limited::new(body, MOST).collect().await?.to_bytes()))
        };
        // The exporter works on a thread of its own that knows of no runtime, not even of its time.
        self.runtime.spawn(async { tokio::time::timeout(PATIENCE, whole).await }).await??
    }
}
