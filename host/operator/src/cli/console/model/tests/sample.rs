//! A cluster and a model for the tests of the console. The objects are of kinds that the default policies claim; only
//! this file names these kinds.

use std::{sync::Arc, time::Duration};

use kaos_cluster::{Cluster as TestCluster, TokioClock};
use kaos_policy::contract::HOME;
use serde_json::{Value, json};

use crate::{
    cli::{
        console::model::{Model, start},
        facts::OperatorFacts,
    },
    definitions::embedded,
    policies::sample_cluster,
};

/// A kind that a default policy claims.
pub(in crate::cli::console) struct SampleKind {
    pub(in crate::cli::console) plural: &'static str,
    pub(in crate::cli::console) kind: &'static str,
}

impl SampleKind {
    /// Returns an object's name with the kind.
    pub(in crate::cli::console) fn at(&self, name: &str) -> String {
        format!("{} {name}", self.kind)
    }
}

/// Objects of this kind use an object of the kind [`USED`]. The name of this kind comes before the name of `USED`.
pub(in crate::cli::console) const USER: SampleKind = SampleKind { plural: "agents", kind: "Agent" };
pub(in crate::cli::console) const USED: SampleKind = SampleKind { plural: "modelapis", kind: "ModelAPI" };
/// The tests have no objects of this kind.
pub(in crate::cli::console) const EMPTY: SampleKind = SampleKind { plural: "mcpservers", kind: "MCPServer" };

/// Returns a cluster that serves the default kinds, with these namespaces.
pub(in crate::cli::console) async fn cluster(namespaces: &[&str]) -> TestCluster {
    let clock = TokioClock::starting_at("2026-01-01T00:00:00Z".parse().expect("a time"));
    let cluster = TestCluster::builder().clock(clock).without_controllers().start();
    for definition in embedded() {
        cluster.plant("apiextensions.k8s.io", "customresourcedefinitions", definition);
    }
    for name in [&[HOME][..], namespaces].concat() {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        cluster.plant("", "namespaces", namespace);
    }
    cluster.settled().await;
    cluster
}

/// Adds an object that is ready, or not. An object of the kind [`USER`] uses `llm`.
pub(in crate::cli::console) fn add(
    cluster: &TestCluster,
    of: &SampleKind,
    (namespace, name): (&str, &str),
    is_ready: bool,
) {
    let spec = if of.kind == USER.kind {
        json!({"modelAPI": "llm", "model": "gpt"})
    } else {
        json!({"mode": "Proxy", "proxyConfig": {"models": ["*"]}})
    };
    let status = if is_ready { "True" } else { "False" };
    let object = json!({
        "apiVersion": "kaos.tools/v1alpha1", "kind": of.kind,
        "metadata": {"name": name, "namespace": namespace, "generation": 1}, "spec": spec,
        "status": {"observedGeneration": 1, "phase": "Ready", "ready": is_ready, "endpoint": "http://llm:8000",
            "conditions": [{"type": "Ready", "status": status, "reason": "Test", "message": "for the test"}]},
    });
    cluster.plant("kaos.tools", of.plural, object);
}

/// Starts a model, and waits until the model contains all objects and their connections.
pub(in crate::cli::console) async fn model(cluster: &TestCluster, named: &[&str]) -> Arc<Model> {
    let client = kube::Client::new(cluster.service(), "default");
    let named = named.iter().map(|&name| name.to_owned()).collect();
    let model =
        start(client, OperatorFacts { cluster: sample_cluster(), policies: Vec::new() }, named).await.expect("a model");
    until(|| !model.is_loading() && model.unconnected(1).1.is_empty()).await;
    model
}

/// Waits until something is true. The clock of the test goes on only if there is nothing else to do.
pub(in crate::cli::console) async fn until(is_so: impl Fn() -> bool) {
    for _ in 0..100_000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the test waits for ever");
}

/// Returns the JSON of an object of the kind [`USER`], for tests that change it.
pub(in crate::cli::console) fn stored(cluster: &TestCluster, namespace: &str, name: &str) -> Value {
    let object = cluster.object("kaos.tools", USER.plural, namespace, name).expect("the object");
    (*object).clone()
}
