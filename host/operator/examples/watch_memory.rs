//! What the watch keeps of an object, in bytes of resident memory.
//!
//! `cargo run --release --example watch_memory [objects]` starts an embedded cluster in a second process, fills it with so
//! many primaries (10,000 by default), each with a Deployment and a Service, watches it, and prints what that took.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a program for developers")]

use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
    sync::{Arc, atomic::AtomicUsize, atomic::Ordering},
    time::{Duration, Instant},
};

use kaos_cluster::Cluster;
use kaos_operator::{
    metrics::Metrics,
    watch::{Coverage, Watch, WatchOptions},
};
use kaos_policy::contract::{Claim, ResourceType};
use kube::{Client, Config};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some("serve") => serve(arguments.next().unwrap().parse().unwrap()).await,
        count => measure(count.map_or(10_000, |count| count.parse().unwrap())).await,
    }
}

async fn measure(count: usize) {
    let mut server = Command::new(std::env::current_exe().unwrap())
        .args(["serve", &count.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut address = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut address).unwrap();
    let client = Client::try_from(Config::new(format!("http://{}", address.trim()).parse().unwrap())).unwrap();
    let woken = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&woken);
    let watch = Watch::new(client, WatchOptions::default(), Arc::new(Metrics::new()), move |_, _| {
        counter.fetch_add(1, Ordering::Relaxed);
    });
    let before = resident();
    let start = Instant::now();
    watch.cover(Coverage::of(&[claim()]));
    let (running, stop) = (watch.clone(), CancellationToken::new());
    let token = stop.clone();
    let task = tokio::spawn(async move { running.run(token).await });
    while watch.synced().is_err() || woken.load(Ordering::Relaxed) < count {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let took = start.elapsed();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let after = resident();
    let objects = 3 * count;
    println!("{objects} objects listed in {took:.2?}; resident before {before} KiB, after {after} KiB");
    println!(
        "{} bytes an object, {} bytes a primary with its children",
        (after - before) * 1024 / objects,
        (after - before) * 1024 / count
    );
    stop.cancel();
    task.await.unwrap();
    server.kill().unwrap();
    server.wait().unwrap();
}

fn claim() -> Claim {
    Claim {
        primary: ResourceType::new("test.io/v1", "Widget"),
        emits: vec![ResourceType::new("apps/v1", "Deployment"), ResourceType::new("v1", "Service")],
        reads: vec![ResourceType::new("test.io/v1", "Widget")],
        wishes: Vec::new(),
        finalizer: None,
        retired_finalizers: Vec::new(),
        samples: Vec::new(),
        extra: "{}".to_owned(),
    }
}

/// KiB of resident memory of this process.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("resident memory is read on Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

async fn serve(count: usize) {
    let cluster = Cluster::builder().without_controllers().start();
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    cluster.plant(
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.test.io"},
            "spec": {"group": "test.io", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget", "singular": "widget", "listKind": "WidgetList"},
                "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": open, "status": open}}}}]}}),
    );
    for i in 0..count {
        let widget = cluster.plant("test.io", "widgets", widget(i));
        let owner = json!([{"apiVersion": "test.io/v1", "kind": "Widget", "name": format!("w{i}"), "controller": true,
            "blockOwnerDeletion": true, "uid": widget["metadata"]["uid"]}]);
        cluster.plant("apps", "deployments", deployment(i, &owner));
        cluster.plant("", "services", service(i, &owner));
    }
    cluster.settled().await;
    let server = cluster.listen(([127, 0, 0, 1], 0).into()).await.unwrap();
    println!("{}", server.address());
    std::future::pending::<()>().await;
}

fn metadata(i: usize, suffix: &str, owner: &Value) -> Value {
    let labels = json!({"app.kubernetes.io/managed-by": "kaos-operator", "app.kubernetes.io/name": format!("w{i}"), "app": "widget"});
    let fields = json!({"f:metadata": {"f:labels": {".": {}, "f:app": {}, "f:app.kubernetes.io/name": {}}}, "f:spec": {"f:replicas": {}}});
    let managed = json!([{"manager": "kaos-operator", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields}]);
    json!({"name": format!("w{i}{suffix}"), "namespace": format!("team-{}", i % 50), "labels": labels, "generation": 1,
        "annotations": {"kaos.tools/applied-digest": format!("sha256:{i:064}")}, "ownerReferences": owner, "managedFields": managed})
}

fn widget(i: usize) -> Value {
    let condition = |of: &str| {
        json!({"type": of, "status": "True", "reason": "AsPlanned", "observedGeneration": 1,
        "lastTransitionTime": "2026-01-01T00:00:00Z", "message": "everything is as it should be"})
    };
    let conditions: Vec<Value> = ["Accepted", "Resolved", "Applied", "Ready"].into_iter().map(condition).collect();
    json!({"apiVersion": "test.io/v1", "kind": "Widget", "metadata": metadata(i, "", &json!([])),
        "spec": {"model": "a-model", "api": "an-api", "servers": ["one", "two"], "config": {"description": "does what widgets do",
            "instructions": "You are a widget. Answer in one sentence and say what you did not know.", "steps": 5}},
        "status": {"phase": "Ready", "ready": true, "endpoint": format!("http://w{i}.team.svc.cluster.local:8000"), "conditions": conditions}})
}

fn deployment(i: usize, owner: &Value) -> Value {
    let env: Vec<Value> =
        (0..20).map(|n| json!({"name": format!("WIDGET_SETTING_{n}"), "value": format!("value-{n}-of-{i}")})).collect();
    let probe = json!({"httpGet": {"path": "/health", "port": 8000, "scheme": "HTTP"}, "initialDelaySeconds": 10, "periodSeconds": 10,
        "timeoutSeconds": 1, "successThreshold": 1, "failureThreshold": 3});
    let condition = |of: &str| {
        json!({"type": of, "status": "True", "reason": "MinimumReplicasAvailable", "message": "Deployment has minimum availability.",
        "lastUpdateTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata(i, "-run", owner), "spec": {"replicas": 1, "revisionHistoryLimit": 10,
        "progressDeadlineSeconds": 600, "selector": {"matchLabels": {"app": format!("w{i}")}},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
        "template": {"metadata": {"labels": {"app": format!("w{i}")}, "annotations": {"kaos.tools/pod-spec-hash": format!("{i:016}")}},
            "spec": {"containers": [{"name": "main", "image": "registry.example/widget:1.2.3", "imagePullPolicy": "IfNotPresent", "env": env,
                "ports": [{"containerPort": 8000, "protocol": "TCP", "name": "http"}], "readinessProbe": probe, "livenessProbe": probe,
                "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File", "resources": {}}],
                "restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler", "securityContext": {}, "terminationGracePeriodSeconds": 30}}},
        "status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1,
            "conditions": [condition("Available"), condition("Progressing")]}})
}

fn service(i: usize, owner: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata(i, "-svc", owner), "spec": {"type": "ClusterIP", "clusterIP": "10.0.0.1",
        "clusterIPs": ["10.0.0.1"], "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack", "internalTrafficPolicy": "Cluster", "sessionAffinity": "None",
        "selector": {"app": format!("w{i}")}, "ports": [{"name": "http", "port": 8000, "targetPort": 8000, "protocol": "TCP"}]}, "status": {"loadBalancer": {}}})
}
