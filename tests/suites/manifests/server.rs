//! A client for the API server of a cluster, which accepts or rejects objects and manifests.

use std::sync::Arc;
use std::time::Duration;

use http::Request;
use kaos_operator::client::{CallLayer, connect};
use kaos_operator::leader_election::Fence;
use kaos_operator::metrics::Metrics;
use kaos_tests::control_plane::ControlPlane;
use kaos_tests::harness::World;
use kaos_tests::harness::samples::namespace;
use kube::Client;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};

/// The namespace of all objects.
pub(crate) const NAMESPACE: &str = "fuzz";

/// The API server of a cluster.
pub(crate) struct Server {
    client: Client,
}

impl Server {
    /// Connects to a cluster's API server, and installs the CustomResourceDefinitions of the kinds.
    pub(crate) async fn over(cluster: &ControlPlane) -> Self {
        let read = Kubeconfig::read_from(cluster.kubeconfig()).unwrap();
        let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await.unwrap();
        // Use the operator's client, because it escapes characters that the server would misread.
        let metrics = Arc::new(Metrics::new());
        let layer = CallLayer { deadline: Duration::from_mins(1), fence: Fence::open(), metrics };
        let client = connect(config, &layer).unwrap();
        let world = World::over(client.clone(), NAMESPACE);
        world.apply(&namespace(NAMESPACE)).await;
        for definition in kaos_crds::manifests::ALL {
            let definition: Value = serde_saphyr::from_str(definition).unwrap();
            world.apply(&definition).await;
        }
        let server = Self { client };
        let probe = json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "ModelAPI", "metadata": {"name": "probe", "namespace": NAMESPACE},
            "spec": {"mode": "Proxy", "proxyConfig": {"models": ["*"]}}});
        while server.create(&probe).await.is_err() {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        server
    }

    /// Tries to create an object in a dry run. Returns the server's error if the server rejects the object.
    pub(crate) async fn create(&self, object: &Value) -> Result<(), String> {
        let (collection, _) = place(object);
        self.ask("POST", &format!("{collection}?dryRun=All&fieldManager=user"), "application/json", object)
            .await
            .map(drop)
    }

    /// Tries a server-side apply in a dry run. Returns the server's error if the server rejects the manifest.
    pub(crate) async fn attempt(&self, manifest: &Value) -> Result<(), String> {
        self.patch(manifest, "&dryRun=All").await.map(drop)
    }

    /// Applies a manifest and returns the stored object.
    pub(crate) async fn apply(&self, manifest: &Value) -> Result<Value, String> {
        self.patch(manifest, "").await?;
        self.ask("GET", &place(manifest).1, "application/json", &Value::Null).await
    }

    /// Deletes the object of a manifest.
    pub(crate) async fn delete(&self, manifest: &Value) {
        let deleted = self.ask("DELETE", &place(manifest).1, "application/json", &Value::Null).await;
        assert!(deleted.is_ok(), "{deleted:?}");
    }

    async fn patch(&self, manifest: &Value, more: &str) -> Result<Value, String> {
        let url = format!("{}?fieldManager=kaos-operator&force=true{more}", place(manifest).1);
        self.ask("PATCH", &url, "application/apply-patch+yaml", manifest).await
    }

    async fn ask(&self, method: &str, url: &str, media_type: &str, body: &Value) -> Result<Value, String> {
        let body = if body.is_null() { Vec::new() } else { serde_json::to_vec(body).unwrap() };
        let request = Request::builder().method(method).uri(url).header("content-type", media_type).body(body).unwrap();
        match self.client.request::<Value>(request).await {
            Ok(answer) => Ok(answer),
            Err(kube::Error::Api(status)) => Err(format!("{}: {}", status.code, status.message)),
            Err(other) => panic!("{method} {url}: {other}"),
        }
    }
}

/// Returns the API path of an object's collection, and the API path of the object.
fn place(object: &Value) -> (String, String) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
    let root = if version.contains('/') { format!("/apis/{version}") } else { format!("/api/{version}") };
    let plural = format!("{}s", kind.to_lowercase());
    let collection = format!("{root}/namespaces/{NAMESPACE}/{plural}");
    let item = format!("{collection}/{}", text(&object["metadata"]["name"]));
    (collection, item)
}
