//! Helpers that all tests share.
#![allow(dead_code, reason = "each test file uses only some helpers")]

use k8s_openapi::api::apps::v1::Deployment;
use kaos_cluster::{Cluster, TokioClock};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};

/// Starts a cluster with a namespace `t`, in simulated time. Returns the cluster and a client in the same process.
pub(crate) async fn start() -> (Cluster, Client) {
    let clock = TokioClock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
    let cluster = Cluster::builder().clock(clock).start();
    let client = client(&cluster);
    let namespaces = api_of(&client, "", "v1", "Namespace", None);
    namespaces.create(&PostParams::default(), &object(json!({"metadata": {"name": "t"}}))).await.unwrap();
    cluster.settled().await;
    (cluster, client)
}

pub(crate) fn client(cluster: &Cluster) -> Client {
    Client::new(cluster.service(), "t")
}

pub(crate) fn api_of(
    client: &Client,
    group: &str,
    version: &str,
    kind: &str,
    namespace: Option<&str>,
) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}

pub(crate) fn config_maps(client: &Client) -> Api<DynamicObject> {
    api_of(client, "", "v1", "ConfigMap", Some("t"))
}

pub(crate) fn widgets(client: &Client) -> Api<DynamicObject> {
    api_of(client, "test.io", "v1", "Widget", Some("t"))
}

pub(crate) fn object(value: Value) -> DynamicObject {
    let mut value = value;
    if value["metadata"].is_null() {
        value["metadata"] = json!({});
    }
    serde_json::from_value(value).unwrap()
}

pub(crate) async fn apply(
    api: &Api<DynamicObject>,
    name: &str,
    manager: &str,
    value: Value,
) -> kube::Result<DynamicObject> {
    api.patch(name, &PatchParams::apply(manager), &Patch::Apply(value)).await
}

pub(crate) fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
}

pub(crate) fn deployment(name: &str, replicas: i32, image: &str) -> Deployment {
    serde_json::from_value(json!({"metadata": {"name": name, "namespace": "t"}, "spec": {"replicas": replicas,
        "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "main", "image": image}]}}}}))
    .unwrap()
}

/// Returns a CustomResourceDefinition of widgets. `spec` is the schema of a widget's spec.
pub(crate) fn definition(spec: &Value) -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.test.io"},
        "spec": {"group": "test.io", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec,
                    "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}},
                "additionalPrinterColumns": [{"name": "Mode", "type": "string", "jsonPath": ".spec.mode"}]}]}})
}

pub(crate) async fn install(cluster: &Cluster, client: &Client, spec: &Value) {
    let definitions = api_of(client, "apiextensions.k8s.io", "v1", "CustomResourceDefinition", None);
    apply(&definitions, "widgets.test.io", "test", definition(spec)).await.unwrap();
    cluster.settled().await;
}

pub(crate) fn widget(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "test.io/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec})
}

/// Returns the status code of a refused request.
pub(crate) fn code<T: std::fmt::Debug>(result: kube::Result<T>) -> u16 {
    match result.unwrap_err() {
        kube::Error::Api(status) => status.code,
        other => panic!("not an answer: {other}"),
    }
}
