//! Tests `StatefulSet`s, Jobs and disruption budgets: the objects and statuses that their controllers write, and
//! validation. Also tests that the cluster refuses features that it does not have.
#![allow(clippy::unwrap_used, clippy::panic, reason = "what tests share fails by panicking")]

use std::time::Duration;

use crate::support::{api_of, object, start};
use kaos_cluster::{Cluster, PodFate};
use kube::{
    Api, Client,
    api::{DynamicObject, ListParams, LogParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

fn api(client: &Client, kind: &str) -> Api<DynamicObject> {
    let group = match kind {
        "StatefulSet" | "ReplicaSet" => "apps",
        "Job" => "batch",
        "PodDisruptionBudget" => "policy",
        _ => "",
    };
    api_of(client, group, "v1", kind, Some("t"))
}

async fn create(client: &Client, kind: &str, name: &str, spec: Value) -> Result<DynamicObject, kube::Error> {
    let wanted = object(json!({"metadata": {"name": name}, "spec": spec}));
    api(client, kind).create(&PostParams::default(), &wanted).await
}

async fn patch(client: &Client, kind: &str, name: &str, spec: Value) -> Result<DynamicObject, kube::Error> {
    api(client, kind).patch(name, &PatchParams::default(), &Patch::Merge(json!({"spec": spec}))).await
}

/// The expected statuses were recorded from kube-controller-manager 1.36.
async fn status(client: &Client, kind: &str, name: &str) -> Value {
    api(client, kind).get(name).await.unwrap().data["status"].clone()
}

async fn pods(client: &Client) -> Vec<String> {
    let listed = api(client, "Pod").list(&ListParams::default()).await.unwrap();
    listed.items.into_iter().filter_map(|pod| pod.metadata.name).collect()
}

fn template(image: &str, policy: &str) -> Value {
    let containers = json!([{"name": "c", "image": image}]);
    json!({"metadata": {"labels": {"app": "db"}}, "spec": {"restartPolicy": policy, "containers": containers}})
}

fn set(replicas: i64) -> Value {
    json!({"replicas": replicas, "serviceName": "db", "selector": {"matchLabels": {"app": "db"}},
        "template": template("db:1", "Always")})
}

fn message(error: &kube::Error) -> &str {
    match error {
        kube::Error::Api(status) => &status.message,
        other => panic!("{other}"),
    }
}

#[tokio::test(start_paused = true)]
async fn the_pods_of_a_stateful_set_have_a_volume_for_each_claim_template() {
    let (cluster, client) = start().await;
    let mut spec = set(1);
    spec["volumeClaimTemplates"] = json!([{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}}}}]);
    let mount = |name: &str| json!([{"name": name, "mountPath": "/data"}]);
    spec["template"]["spec"]["containers"][0]["volumeMounts"] = mount("other");
    let refused = create(&client, "StatefulSet", "db", spec.clone()).await.unwrap_err();
    assert!(message(&refused).contains("volumeMounts[0].name: Not found: \"other\""), "{refused}");
    spec["template"]["spec"]["containers"][0]["volumeMounts"] = mount("data");
    create(&client, "StatefulSet", "db", spec).await.unwrap();
    cluster.settled().await;
    let pod = api(&client, "Pod").get("db-0").await.unwrap();
    let volume = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data-db-0"}}]);
    assert_eq!(pod.data["spec"]["volumes"], volume);
}

#[tokio::test(start_paused = true)]
async fn a_stateful_set_creates_pods_in_order_and_replaces_them_in_reverse() {
    let (cluster, client) = start().await;
    cluster.set_pods(PodFate::ReadyAfter(Duration::from_secs(5)));
    create(&client, "StatefulSet", "db", set(2)).await.unwrap();
    cluster.settled().await;
    assert_eq!(pods(&client).await, ["db-0"]);
    tokio::time::sleep(Duration::from_secs(6)).await;
    cluster.settled().await;
    assert_eq!(pods(&client).await, ["db-0", "db-1"]);
    tokio::time::sleep(Duration::from_secs(6)).await;
    cluster.settled().await;
    let told = status(&client, "StatefulSet", "db").await;
    let revision = told["updateRevision"].clone();
    let complete = json!({
        "availableReplicas": 2, "collisionCount": 0, "currentReplicas": 2, "currentRevision": revision,
        "observedGeneration": 1, "readyReplicas": 2, "replicas": 2, "updateRevision": revision, "updatedReplicas": 2,
    });
    assert_eq!(told, complete);
    let pod = api(&client, "Pod").get("db-1").await.unwrap();
    assert_eq!(pod.data["spec"]["hostname"], "db-1");
    assert_eq!(pod.metadata.labels.unwrap()["apps.kubernetes.io/pod-index"], "1");

    patch(&client, "StatefulSet", "db", json!({"template": template("db:2", "Always")})).await.unwrap();
    cluster.settled().await;
    let during = status(&client, "StatefulSet", "db").await;
    assert_eq!((&during["readyReplicas"], &during["updatedReplicas"]), (&json!(1), &json!(1)), "{during}");
    assert_ne!(during["currentRevision"], during["updateRevision"]);
    tokio::time::sleep(Duration::from_secs(20)).await;
    cluster.settled().await;
    let after = status(&client, "StatefulSet", "db").await;
    assert_eq!(
        (&after["updatedReplicas"], &after["currentRevision"]),
        (&json!(2), &after["updateRevision"]),
        "{after}"
    );
    patch(&client, "StatefulSet", "db", json!({"replicas": 0})).await.unwrap();
    cluster.settled().await;
    assert!(pods(&client).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_job_completes_after_a_success_and_fails_after_too_many_failures() {
    let (cluster, client) = start().await;
    cluster.set_pods_of("t", "bad", Some(PodFate::CrashLoop));
    cluster.set_pods_of("t", "once", Some(PodFate::ReadyAfter(Duration::from_secs(3))));
    create(&client, "Job", "once", json!({"template": template("x:1", "Never")})).await.unwrap();
    let bad = json!({"backoffLimit": 1, "ttlSecondsAfterFinished": 60, "template": template("x:1", "Never")});
    create(&client, "Job", "bad", bad).await.unwrap();
    cluster.settled().await;
    let during = status(&client, "Job", "once").await;
    assert_eq!((&during["active"], &during["ready"]), (&json!(1), &json!(1)), "{during}");
    tokio::time::sleep(Duration::from_secs(4)).await;
    cluster.settled().await;
    let told = status(&client, "Job", "once").await;
    assert_eq!((&told["succeeded"], &told["ready"], &told["active"]), (&json!(1), &json!(0), &Value::Null), "{told}");
    let conditions: Vec<&Value> = told["conditions"].as_array().unwrap().iter().map(|it| &it["type"]).collect();
    assert_eq!(conditions, ["SuccessCriteriaMet", "Complete"]);
    assert!(told["completionTime"].is_string(), "{told}");
    tokio::time::sleep(Duration::from_secs(20)).await;
    cluster.settled().await;
    let told = status(&client, "Job", "bad").await;
    assert_eq!(
        (&told["failed"], &told["conditions"][1]["reason"]),
        (&json!(2), &json!("BackoffLimitExceeded")),
        "{told}"
    );
    tokio::time::sleep(Duration::from_secs(61)).await;
    cluster.settled().await;
    assert!(api(&client, "Job").get_opt("bad").await.unwrap().is_none());
    // The deletion of the Job `bad` also deleted its pods: a finalizer keeps a pod only until the controller has
    // counted the pod. The remaining pod belongs to the Job `once`.
    assert_eq!(pods(&client).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_budget_counts_the_allowed_disruptions() {
    let (cluster, client) = start().await;
    create(&client, "StatefulSet", "db", set(3)).await.unwrap();
    let selector = json!({"matchLabels": {"app": "db"}});
    for (name, field, bound) in [
        ("most", "maxUnavailable", json!(1)),
        ("least", "minAvailable", json!(3)),
        ("share", "minAvailable", json!("50%")),
    ] {
        create(&client, "PodDisruptionBudget", name, json!({field: bound, "selector": selector})).await.unwrap();
    }
    cluster.settled().await;
    for (name, desired, allowed, reason) in
        [("most", 2, 1, "SufficientPods"), ("least", 3, 0, "InsufficientPods"), ("share", 2, 1, "SufficientPods")]
    {
        let told = status(&client, "PodDisruptionBudget", name).await;
        let numbers =
            ["currentHealthy", "desiredHealthy", "expectedPods", "disruptionsAllowed"].map(|it| told[it].as_i64());
        assert_eq!(numbers, [Some(3), Some(desired), Some(3), Some(allowed)], "{name}: {told}");
        assert_eq!(told["conditions"][0]["reason"], reason, "{name}: {told}");
    }
    cluster.set_pods(PodFate::NotReady);
    cluster.settled().await;
    let told = status(&client, "PodDisruptionBudget", "most").await;
    assert_eq!((&told["currentHealthy"], &told["disruptionsAllowed"]), (&json!(0), &json!(0)), "{told}");
}

#[tokio::test(start_paused = true)]
async fn invalid_workloads_are_refused_with_a_real_servers_messages() {
    let (cluster, client) = start().await;
    let error = create(&client, "Job", "bad", json!({"template": template("x:1", "Always")})).await.unwrap_err();
    let told = "spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", \"Never\"";
    assert_eq!(message(&error), format!("Job.batch \"bad\" is invalid: {told}"));
    let both = json!({"maxUnavailable": 1, "minAvailable": 1});
    let error = create(&client, "PodDisruptionBudget", "bad", both).await.unwrap_err();
    assert!(message(&error).ends_with("minAvailable and maxUnavailable cannot be both set"), "{error}");
    create(&client, "StatefulSet", "db", set(1)).await.unwrap();
    create(&client, "Job", "once", json!({"template": template("x:1", "Never")})).await.unwrap();
    cluster.settled().await;
    let error = patch(&client, "StatefulSet", "db", json!({"serviceName": "x"})).await.unwrap_err();
    let told = "StatefulSet.apps \"db\" is invalid: spec: Forbidden: updates to statefulset spec for fields other than";
    assert!(message(&error).starts_with(told), "{error}");
    let error = patch(&client, "Job", "once", json!({"completions": 3})).await.unwrap_err();
    assert!(message(&error).ends_with("spec.completions: Invalid value: 3: field is immutable"), "{error}");
}

#[tokio::test]
async fn a_missing_feature_is_refused_with_an_alternative() {
    let cluster = Cluster::builder().instead("it serves Pods").start();
    let client = crate::support::client(&cluster);
    api_of(&client, "", "v1", "Namespace", None)
        .create(&PostParams::default(), &object(json!({"metadata": {"name": "t"}})))
        .await
        .unwrap();
    let pod = json!({"containers": [{"name": "c", "image": "x"}]});
    create(&client, "Pod", "web", pod).await.unwrap();
    let pods: Api<k8s_openapi::api::core::v1::Pod> = Api::namespaced(client.clone(), "t");
    let error = pods.logs("web", &LogParams::default()).await.unwrap_err();
    let kube::Error::Api(told) = &error else { panic!("{error}") };
    assert_eq!((told.code, told.reason.as_str()), (501, "NotImplemented"));
    assert!(
        told.message.contains("this cluster runs no containers") && told.message.contains("kubectl describe pod"),
        "{error}"
    );
    let error = pods.logs("nobody", &LogParams::default()).await.unwrap_err();
    assert_eq!(message(&error), "pods \"nobody\" not found");
    let ingresses = api_of(&client, "networking.k8s.io", "v1", "Ingress", Some("t"));
    let error = ingresses.list(&ListParams::default()).await.unwrap_err();
    assert_eq!(message(&error), "the server could not find the requested resource: it serves Pods");
}

#[tokio::test(start_paused = true)]
async fn an_owner_of_two_billion_pods_gets_a_thousand_and_an_event_says_so() {
    let many = 2_000_000_000_i64;
    let mut parallel = set(many);
    parallel["podManagementPolicy"] = json!("Parallel");
    let mut replicas = set(many);
    replicas.as_object_mut().unwrap().remove("serviceName");
    let job = json!({"parallelism": many, "completions": many, "template": template("job:1", "Never")});
    for (kind, spec) in [("StatefulSet", parallel), ("ReplicaSet", replicas), ("Job", job)] {
        let (cluster, client) = start().await;
        cluster.set_pods(PodFate::ReadyAfter(Duration::from_hours(1)));
        create(&client, kind, "many", spec).await.unwrap();
        cluster.settled().await;
        assert_eq!(pods(&client).await.len(), 1000, "{kind}");
        let events = cluster.objects("", "events");
        let told: Vec<_> = events.iter().filter(|event| event["reason"] == "TooManyPods").collect();
        assert_eq!(told.len(), 1, "{kind}");
        let message = told[0]["message"].as_str().unwrap();
        assert!(message.contains(&format!("{kind} many gets 1000 of 2000000000 pods")), "{message}");
    }
}
