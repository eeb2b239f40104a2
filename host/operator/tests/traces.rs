//! Tests that a collector receives a span for each pass, with the real binary and an embedded cluster.
#![cfg(feature = "otlp")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    net::{Ipv4Addr, SocketAddr},
    process::{Child, Command, Stdio},
    time::Duration,
};

use crate::support::{Folder, binary};
use axum::{Router, body::Bytes, http::HeaderMap, routing::post};
use kaos_cluster::Cluster;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

const HERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
/// A time limit that is far above the duration of any test.
const PATIENCE: Duration = Duration::from_mins(3);

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
        "metadata": {"name": "traced", "namespace": "team", "generation": 1},
        "spec": {"mode": "Proxy", "proxyConfig": {"models": ["*"]}, "replicas": 1}});
    cluster.plant("kaos.tools", "modelapis", object);
    cluster
}

/// An operator that ends with the test.
struct Running(Child);

impl Running {
    fn start(cluster: &str, environment: &[(&str, &str)]) -> Self {
        let mut command = binary();
        command.envs(environment.iter().copied()).args(["run", "--kubeconfig", cluster]);
        command.args(["--metrics-bind-address=0", "--health-probe-bind-address=0", "--debug-bind-address=0"]);
        Self(command.stderr(Stdio::inherit()).spawn().unwrap())
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

async fn until_ready(cluster: &Cluster) {
    let ready = async {
        while cluster.object("kaos.tools", "modelapis", "team", "traced").unwrap()["status"]["ready"] != true {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, ready).await.expect("the object gets ready");
}

fn contains(body: &Bytes, text: &str) -> bool {
    body.windows(text.len()).any(|window| window == text.as_bytes())
}

#[tokio::test(flavor = "multi_thread")]
async fn passes_become_spans_and_the_last_are_sent_before_the_end() {
    let (address, mut received) = collector().await;
    let cluster = cluster();
    let server = cluster.listen(HERE).await.unwrap();
    let folder = Folder::new("traces");
    let kubeconfig = folder.write("kubeconfig", server.kubeconfig("admin"));
    let endpoint = format!("http://{address}");
    let environment = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()),
        ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=a-test"),
        // The process sends its spans only when it ends.
        ("OTEL_BSP_SCHEDULE_DELAY", "3600000"),
    ];
    let operator = Running::start(&kubeconfig, &environment);
    until_ready(&cluster).await;
    assert!(received.try_recv().is_err());
    tokio::task::spawn_blocking(move || operator.terminate()).await.unwrap();
    let (of, body) = received.try_recv().expect("there are traces");
    assert_eq!(of, "application/x-protobuf");
    for text in ["kaos-operator", "a-test", "pass", "ModelAPI", "team", "traced", "result", "changed", "applied"] {
        assert!(contains(&body, text), "{text} is not in {}", String::from_utf8_lossy(&body));
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
