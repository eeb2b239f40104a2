//! A watch on an embedded cluster, in simulated time.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use kaos_cluster::{Cluster, TokioClock, faults::Entry};
use kaos_objects::{Reference, ResourceType, Selector, Target};
use kube::{
    Api, Client,
    api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{
    object_key::ObjectKey,
    queue::Urgency,
    recorded::Recorded,
    watch::{Claimed, Coverage, Watch, WatchOptions},
};

pub(super) struct Bench {
    pub(super) cluster: Cluster,
    pub(super) client: Client,
    pub(super) watch: Watch,
    pub(super) metrics: Arc<Recorded>,
    woken: Arc<Mutex<Vec<(String, Urgency)>>>,
    _stop: DropGuard,
}

pub(super) fn of(text: &str) -> ResourceType {
    let (api_version, kind) = text.split_once(' ').unwrap();
    ResourceType::new(api_version, kind)
}

pub(super) fn widget() -> ResourceType {
    of("test.io/v1 Widget")
}

pub(super) fn gadget() -> ResourceType {
    of("test.io/v1 Gadget")
}

/// Returns a coverage in which Widgets emit ConfigMaps, Secrets and Deployments, and read Gadgets, Widgets, ConfigMaps
/// and Secrets.
pub(super) fn coverage() -> Coverage {
    let list = |types: &[&str]| types.iter().map(|text| of(text)).collect();
    let mut coverage = Coverage::default();
    let claimed = Claimed {
        emits: list(&["v1 ConfigMap", "apps/v1 Deployment"]),
        reads: list(&["test.io/v1 Gadget", "test.io/v1 Widget", "v1 ConfigMap", "v1 Secret", "v1 Namespace"]),
        wishes: list(&["test.io/v1 Gadget"]),
    };
    coverage.add(&widget(), claimed);
    coverage
}

pub(super) fn definition(kind: &str) -> Value {
    let plural = format!("{}s", kind.to_lowercase());
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.test.io")},
        "spec": {"group": "test.io", "scope": "Namespaced", "names": {"plural": plural, "kind": kind},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": open, "status": open}}}}]}})
}

pub(super) fn cluster(seed: u64) -> (Cluster, Client) {
    let clock = TokioClock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
    let cluster = Cluster::builder().seed(seed).clock(clock).start();
    let client = Client::new(cluster.service(), "t");
    (cluster, client)
}

/// Returns the options of the tests: Secrets are watched, and the other values are the defaults.
pub(super) fn options() -> WatchOptions {
    WatchOptions { secrets: true, digest_key: b"key".to_vec(), ..WatchOptions::default() }
}

impl Bench {
    /// Starts a cluster with the tests' CustomResourceDefinitions and a namespace, and a watch that covers Widgets.
    pub(super) async fn start() -> Self {
        Self::start_with(options()).await
    }

    pub(super) async fn start_with(options: WatchOptions) -> Self {
        let (cluster, client) = cluster(options.seed);
        Self::prepare(&cluster, &client).await;
        let bench = Self::attach(cluster, client, options);
        bench.until("synced", |bench| bench.watch.synced().is_ok()).await;
        bench
    }

    pub(super) async fn prepare(cluster: &Cluster, client: &Client) {
        put(client, json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "t"}})).await;
        put(client, json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "u"}})).await;
        for kind in ["Widget", "Gadget"] {
            put(client, definition(kind)).await;
        }
        cluster.settled().await;
    }

    /// Attaches a watch to an existing cluster.
    pub(super) fn attach(cluster: Cluster, client: Client, options: WatchOptions) -> Self {
        let woken: Arc<Mutex<Vec<(String, Urgency)>>> = Arc::default();
        let sink = Arc::clone(&woken);
        let metrics = Arc::new(Recorded::default());
        let operator = Client::new(cluster.service().as_user("operator"), "t");
        let watch = Watch::new(operator, options, metrics.clone(), move |key, urgency| {
            sink.lock().unwrap().push((format!("{}/{}", key.namespace, key.name), urgency));
        });
        watch.cover(coverage());
        let stop = CancellationToken::new();
        let (running, token) = (watch.clone(), stop.clone());
        tokio::spawn(async move { running.run(token).await });
        Self { cluster, client, watch, metrics, woken, _stop: stop.drop_guard() }
    }

    /// Waits, in simulated time, until a condition is true.
    pub(super) async fn until(&self, what: &str, is: impl Fn(&Self) -> bool) {
        for _ in 0..20_000 {
            if is(self) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("not {what}: {:?}", self.watch.synced());
    }

    /// Waits until the cluster and the watch have no work left.
    pub(super) async fn quiet(&self) {
        self.cluster.settled().await;
        tokio::time::sleep(Duration::from_secs(2)).await;
    }

    /// Returns the objects that the watch woke since the last call, without duplicates.
    pub(super) fn woken(&self) -> BTreeSet<String> {
        self.woken.lock().unwrap().drain(..).map(|(key, _)| key).collect()
    }

    /// Waits until exactly these objects were woken. Checks that no other object is woken soon after.
    pub(super) async fn wakes(&self, keys: &[&str]) {
        self.quiet().await;
        assert_eq!(self.woken(), keys.iter().map(|key| (*key).to_owned()).collect());
    }

    pub(super) async fn put(&self, object: Value) -> Value {
        put(&self.client, object).await
    }

    pub(super) async fn delete(&self, of: &ResourceType, name: &str) {
        api(&self.client, of, "t").delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// Returns the operator's requests since the last call.
    pub(super) fn requests(&self) -> Vec<Entry> {
        let entries = self.cluster.journal().entries();
        self.cluster.journal().clear();
        entries.into_iter().filter(|entry| entry.attempt.user == "operator").collect()
    }

    pub(super) fn key(name: &str) -> ObjectKey {
        ObjectKey::new(widget(), "t", name)
    }
}

pub(super) fn api(client: &Client, of: &ResourceType, namespace: &str) -> Api<DynamicObject> {
    let (group, version) = of.api_version.rsplit_once('/').unwrap_or(("", &of.api_version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &of.kind));
    let clustered = ["Namespace", "CustomResourceDefinition"].contains(&of.kind.as_str());
    if clustered {
        Api::all_with(client.clone(), &resource)
    } else {
        Api::namespaced_with(client.clone(), namespace, &resource)
    }
}

/// Applies an object as a user other than the operator.
pub(super) async fn put(client: &Client, object: Value) -> Value {
    let key = ObjectKey::of_object(&object).unwrap();
    let namespace = if key.namespace.is_empty() { "t" } else { &key.namespace };
    let params = PatchParams::apply("user").force();
    let done = api(client, &key.of, namespace).patch(&key.name, &params, &Patch::Apply(&object)).await.unwrap();
    serde_json::to_value(done).unwrap()
}

pub(super) fn object(of: &ResourceType, name: &str, spec: impl Into<Value>) -> Value {
    let spec: Value = spec.into();
    json!({"apiVersion": of.api_version, "kind": of.kind, "metadata": {"name": name, "namespace": "t"}, "spec": spec})
}

pub(super) fn config_map(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "t"}, "data": {"x": value}})
}

pub(super) fn secret(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "t"}, "stringData": {"password": value}})
}

/// Creates a child of an object, with or without the operator's label.
pub(super) fn child(owner: &Value, name: &str, ours: bool) -> Value {
    let mut child = config_map(name, "1");
    child["metadata"]["ownerReferences"] = json!([{"apiVersion": owner["apiVersion"], "kind": owner["kind"], "controller": true,
        "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}]);
    if ours {
        child["metadata"]["labels"] = json!({"app.kubernetes.io/managed-by": "kaos-operator"});
    }
    child
}

pub(super) fn named(of: &ResourceType, namespace: &str, name: &str) -> Target {
    Target::Named(Reference {
        api_version: of.api_version.clone(),
        kind: of.kind.clone(),
        namespace: Some(namespace.to_owned()),
        name: name.to_owned(),
    })
}

pub(super) fn labelled(of: &ResourceType, key: &str, value: &str) -> Target {
    let labels = vec![(key.to_owned(), value.to_owned())];
    Target::Labelled(Selector { of: of.clone(), namespace: Some("t".to_owned()), labels })
}
