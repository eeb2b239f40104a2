//! Tests that a collector receives the spans of each pass and of its steps, with the real binary and an embedded
//! cluster.
#![cfg(feature = "otlp")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{Read as _, Write as _},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    path::Path,
    process::{Child, Command},
    time::Duration,
};

use crate::support::{Folder, binary};
use axum::{Router, body::Bytes, http::HeaderMap, routing::post};
use k8s_openapi::api::core::v1::Service;
use kaos_cluster::Cluster;
use kube::api::DeleteParams;
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest, common::v1::any_value::Value as Attribute, trace::v1::Span,
};
use prost::Message as _;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

const HERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
/// A time limit that is far above the duration of any test.
const PATIENCE: Duration = Duration::from_mins(3);
/// The ids of the trace and of the span that an annotation of the object contains.
const APPLY: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const APPLY_SPAN: &str = "00f067aa0ba902b7";

/// The requests that a collector received: content type and body.
type Received = UnboundedReceiver<(String, Bytes)>;

/// Starts a collector of traces. Returns the address of the collector, and the requests that the collector receives.
async fn collector() -> (SocketAddr, Received) {
    let (got, received) = unbounded_channel();
    let take = async move |headers: HeaderMap, body: Bytes| {
        let of = headers.get("content-type").and_then(|of| of.to_str().ok()).unwrap_or_default();
        got.send((of.to_owned(), body)).unwrap();
    };
    let listener = tokio::net::TcpListener::bind(HERE).await.unwrap();
    let address = listener.local_addr().unwrap();
    let routes = Router::new().route("/v1/traces", post(take));
    tokio::spawn(async move { axum::serve(listener, routes).await });
    (address, received)
}

/// Starts a cluster with one object for the operator.
fn cluster() -> Cluster {
    let cluster = Cluster::start();
    for text in kaos_crds::manifests::ALL {
        let definition: Value = serde_saphyr::from_str(text).unwrap();
        cluster.plant("apiextensions.k8s.io", "customresourcedefinitions", definition);
    }
    for name in ["kaos-system", "team"] {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        cluster.plant("", "namespaces", namespace);
    }
    let object = json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "ModelAPI",
        "metadata": {"name": "traced", "namespace": "team", "generation": 1,
            "annotations": {"traceparent": format!("00-{APPLY}-{APPLY_SPAN}-01")}},
        "spec": {"mode": "Proxy", "proxyConfig": {"models": ["*"]}, "replicas": 1}});
    cluster.plant("kaos.tools", "modelapis", object);
    cluster
}

/// An operator process that ends when the test ends.
struct Running(Child);

impl Running {
    fn start(cluster: &str, log: &str, environment: &[(&str, &str)]) -> Self {
        let mut command = binary();
        command.envs(environment.iter().copied()).args(["run", "--kubeconfig", cluster, "--log-format=json"]);
        command.args(["--metrics-bind-address=127.0.0.1:0", "--health-probe-bind-address=0", "--debug-bind-address=0"]);
        Self(command.stderr(std::fs::File::create(log).unwrap()).spawn().unwrap())
    }

    fn terminate(mut self) {
        let sent = Command::new("kill").args(["-TERM", &self.0.id().to_string()]).status().unwrap();
        assert!(sent.success());
        assert!(self.0.wait().unwrap().success());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Ignores an error, because the process may have ended already.
        let _ended = self.0.kill().and_then(|()| self.0.wait());
    }
}

async fn until(what: &str, is_so: impl Fn() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("{what}"));
}

/// Fetches the metrics page of the operator that writes this log.
fn metrics(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap();
    let address = text.split("\"metrics\":\"").nth(1).and_then(|rest| rest.split('"').next()).expect("an address");
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    page
}

/// Returns the spans of all requests to the collector.
fn spans(received: &mut Received) -> Vec<Span> {
    let mut spans = Vec::new();
    while let Ok((of, body)) = received.try_recv() {
        assert_eq!(of, "application/x-protobuf");
        for resource in ExportTraceServiceRequest::decode(body).unwrap().resource_spans {
            let attributes = resource.resource.unwrap().attributes;
            let attributes: BTreeMap<_, _> = attributes.iter().map(|each| (&*each.key, format!("{each:?}"))).collect();
            assert!(attributes["service.name"].contains("kaos-operator"), "{attributes:?}");
            assert!(attributes["deployment.environment.name"].contains("a-test"), "{attributes:?}");
            spans.extend(resource.scope_spans.into_iter().flat_map(|scope| scope.spans));
        }
    }
    spans
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|digit| char::from_digit(digit.into(), 16))
        .collect()
}

/// Returns an attribute of a span as text.
fn attribute(span: &Span, key: &str) -> String {
    let of = span.attributes.iter().find(|each| each.key == key).and_then(|each| each.value.as_ref()?.value.as_ref());
    match of.unwrap_or_else(|| panic!("{key} is not in {span:?}")) {
        Attribute::StringValue(text) => text.clone(),
        Attribute::IntValue(number) => number.to_string(),
        Attribute::BoolValue(is_so) => is_so.to_string(),
        other => panic!("{key} is {other:?}"),
    }
}

/// Returns the path of a span: the names of the spans that contain it, and its own name.
fn path(span: &Span, spans: &BTreeMap<&[u8], &Span>) -> String {
    match spans.get(&*span.parent_span_id) {
        Some(parent) => format!("{}/{}", path(parent, spans), span.name),
        None => span.name.clone(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_one_trace_with_a_span_for_each_step_until_the_object_is_ready() {
    let (address, mut received) = collector().await;
    let cluster = cluster();
    let server = cluster.listen(HERE).await.unwrap();
    let folder = Folder::new("traces");
    let (kubeconfig, log) = (folder.write("kubeconfig", server.kubeconfig("admin")), folder.write("log", ""));
    let endpoint = format!("http://{address}");
    let environment = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()),
        ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=a-test"),
        // The process sends its spans only when it ends.
        ("OTEL_BSP_SCHEDULE_DELAY", "3600000"),
    ];
    let operator = Running::start(&kubeconfig, &log, &environment);
    let status = || cluster.object("kaos.tools", "modelapis", "team", "traced").unwrap()["status"].clone();
    until("the object gets ready", || status()["ready"] == true).await;
    // Delete a child, so that the operator needs a further pass to recreate it. This pass has a trace of its own.
    let client = kube::Client::new(cluster.service(), "team");
    let services = kube::Api::<Service>::default_namespaced(client);
    services.delete("modelapi-traced", &DeleteParams::default()).await.unwrap();
    until("the service is back", || cluster.object("", "services", "team", "modelapi-traced").is_some()).await;
    let page = metrics(log.as_ref());
    assert!(received.try_recv().is_err());
    tokio::task::spawn_blocking(move || operator.terminate()).await.unwrap();

    let spans = spans(&mut received);
    let by_id: BTreeMap<&[u8], &Span> = spans.iter().map(|span| (&*span.span_id, span)).collect();
    let of_change: Vec<&Span> = spans.iter().filter(|span| hex(&span.trace_id) == APPLY).collect();
    let paths: BTreeSet<String> = of_change.iter().map(|span| path(span, &by_id)).collect();
    for wanted in [
        "pass",
        "pass/prepare/ask",
        "pass/prepare/ask/policy call",
        "pass/execute/apply",
        "pass/report",
        "pass/report/policy call",
    ] {
        assert!(paths.contains(wanted), "{wanted} is not in {paths:#?}");
    }
    let first = of_change.iter().find(|span| span.name == "pass").unwrap();
    assert_eq!(hex(&first.parent_span_id), APPLY_SPAN);
    for (key, value) in [("kind", "ModelAPI"), ("namespace", "team"), ("name", "traced"), ("generation", "1")] {
        assert_eq!(attribute(first, key), value);
    }
    let asked = of_change.iter().find(|span| span.name == "ask" && attribute(span, "remembered") == "false").unwrap();
    assert_eq!(attribute(asked, "policy"), "modelapi");
    let (version, fuel) = (attribute(asked, "version"), attribute(asked, "fuel").parse::<u64>().unwrap());
    let calls = of_change.iter().filter(|span| span.name == "policy call" && span.parent_span_id == asked.span_id);
    let fuel_of_calls: u64 = calls.map(|span| attribute(span, "fuel").parse::<u64>().unwrap()).sum();
    assert!(fuel > 0 && fuel == fuel_of_calls, "{fuel} and {fuel_of_calls}");
    assert!(
        version.contains('.') && !attribute(asked, "digest").is_empty() && !attribute(asked, "decision").is_empty()
    );
    let applied: BTreeSet<String> =
        of_change.iter().filter(|span| span.name == "apply").map(|span| attribute(span, "kind")).collect();
    assert!(applied.contains("Deployment") && applied.contains("Service"), "{applied:?}");

    let later = spans.iter().find(|span| !span.links.is_empty()).expect("a later pass has a link");
    assert_eq!((&*later.name, &*hex(&later.links[0].trace_id)), ("pass", APPLY));
    assert_ne!(hex(&later.trace_id), APPLY);
    assert!(later.parent_span_id.is_empty(), "{later:?}");
    let traces: BTreeSet<String> = spans.iter().map(|span| hex(&span.trace_id)).collect();
    for metric in ["kaos_operator_pass_duration_seconds_bucket", "kaos_operator_policy_call_duration_seconds_bucket"] {
        let line = page.lines().find(|line| line.starts_with(metric) && line.contains("trace_id")).expect(metric);
        let id = line.split("trace_id=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
        assert!(traces.contains(id), "{line}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_collector_endpoint_is_an_error_at_the_start() {
    let mut command = binary();
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", "no address").args(["run", "--kubeconfig", "none"]);
    let ran = tokio::task::spawn_blocking(move || crate::support::finish(&mut command, "")).await.unwrap();
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("OpenTelemetry"), "{}", ran.stderr);
}
