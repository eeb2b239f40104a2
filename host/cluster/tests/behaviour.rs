//! Tests the controllers: rollouts, scale, garbage collection, namespaces.
#![allow(clippy::unwrap_used, clippy::panic, reason = "what tests share fails by panicking")]

use std::time::Duration;

use crate::support::{api_of, apply, code, config_map, config_maps, deployment, object, start};
use k8s_openapi::api::{
    apps::v1::{Deployment, ReplicaSet},
    core::v1::{Namespace, Pod},
};
use kaos_cluster::{Cluster, PodFate, TokioClock};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, PropagationPolicy},
};
use serde_json::{Value, json};

fn deployments(client: &Client) -> Api<Deployment> {
    Api::namespaced(client.clone(), "t")
}

async fn create(client: &Client, name: &str, replicas: i32) -> Deployment {
    deployments(client).create(&PostParams::default(), &deployment(name, replicas, "image:1")).await.unwrap()
}

fn condition(cluster: &Cluster, name: &str, kind: &str) -> Value {
    let object = cluster.object("apps", "deployments", "t", name).unwrap();
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.into_iter().find(|condition| condition["type"] == kind).unwrap_or_default()
}

fn status(cluster: &Cluster, name: &str) -> Value {
    cluster.object("apps", "deployments", "t", name).unwrap()["status"].clone()
}

#[tokio::test(start_paused = true)]
async fn a_deployment_gets_pods_that_become_ready() {
    let (cluster, client) = start().await;
    create(&client, "web", 3).await;
    cluster.settled().await;
    let status = status(&cluster, "web");
    assert_eq!((&status["readyReplicas"], &status["observedGeneration"]), (&json!(3), &json!(1)));
    assert_eq!(condition(&cluster, "web", "Available")["reason"], "MinimumReplicasAvailable");
    assert_eq!(condition(&cluster, "web", "Progressing")["reason"], "NewReplicaSetAvailable");
    let pods = Api::<Pod>::namespaced(client, "t").list(&ListParams::default().labels("app=web")).await.unwrap();
    assert_eq!(pods.items.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_rollout_keeps_old_pods_until_the_new_ones_are_ready() {
    let (cluster, client) = start().await;
    create(&client, "web", 1).await;
    cluster.settled().await;
    cluster.set_pods_of("t", "web", Some(PodFate::ReadyAfter(Duration::from_secs(30))));
    let image = json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "image:2"}]}}}});
    deployments(&client).patch("web", &PatchParams::default(), &Patch::Strategic(image)).await.unwrap();
    cluster.settled().await;
    let during = status(&cluster, "web");
    assert_eq!(
        (&during["replicas"], &during["updatedReplicas"], &during["availableReplicas"]),
        (&json!(2), &json!(1), &json!(1))
    );
    assert_eq!(condition(&cluster, "web", "Available")["status"], "True");
    tokio::time::sleep(Duration::from_secs(31)).await;
    cluster.settled().await;
    let after = status(&cluster, "web");
    assert_eq!((&after["replicas"], &after["updatedReplicas"]), (&json!(1), &json!(1)));
    assert_eq!(Api::<ReplicaSet>::namespaced(client, "t").list(&ListParams::default()).await.unwrap().items.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_failed_rollout_is_reported_after_its_deadline() {
    let (cluster, client) = start().await;
    cluster.set_pods(PodFate::CrashLoop);
    create(&client, "web", 1).await;
    cluster.settled().await;
    assert_eq!(condition(&cluster, "web", "Available")["reason"], "MinimumReplicasUnavailable");
    tokio::time::sleep(Duration::from_secs(620)).await;
    cluster.settled().await;
    assert_eq!(condition(&cluster, "web", "Progressing")["reason"], "ProgressDeadlineExceeded");
    cluster.set_pods(PodFate::ReadyAfter(Duration::ZERO));
    cluster.settled().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(condition(&cluster, "web", "Progressing")["reason"], "NewReplicaSetAvailable");
}

#[tokio::test(start_paused = true)]
async fn pods_wait_for_their_service_account() {
    let (cluster, client) = start().await;
    let mut web = deployment("web", 1, "image:1");
    web.spec.as_mut().unwrap().template.spec.as_mut().unwrap().service_account_name = Some("late".into());
    deployments(&client).create(&PostParams::default(), &web).await.unwrap();
    cluster.settled().await;
    let failure = condition(&cluster, "web", "ReplicaFailure");
    assert!(failure["message"].as_str().unwrap().contains("serviceaccount \"late\" not found"), "{failure}");
    let accounts = crate::support::api_of(&client, "", "v1", "ServiceAccount", Some("t"));
    accounts
        .create(&PostParams::default(), &crate::support::object(json!({"metadata": {"name": "late"}})))
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_secs(6)).await;
    cluster.settled().await;
    assert_eq!(status(&cluster, "web")["readyReplicas"], 1);
    assert_eq!(condition(&cluster, "web", "ReplicaFailure"), Value::Null);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_pod_is_replaced() {
    let (cluster, client) = start().await;
    create(&client, "web", 1).await;
    cluster.settled().await;
    let pods = Api::<Pod>::namespaced(client, "t");
    let name = async || pods.list(&ListParams::default()).await.unwrap().items[0].metadata.name.clone().unwrap();
    let first = name().await;
    pods.delete(&first, &DeleteParams::default()).await.unwrap();
    cluster.settled().await;
    assert_ne!(name().await, first);
    assert_eq!(status(&cluster, "web")["readyReplicas"], 1);
}

#[tokio::test(start_paused = true)]
async fn the_scale_subresource_scales() {
    let (cluster, client) = start().await;
    create(&client, "web", 1).await;
    let api = deployments(&client);
    api.patch_scale("web", &PatchParams::default(), &Patch::Merge(json!({"spec": {"replicas": 4}}))).await.unwrap();
    cluster.settled().await;
    let scale = api.get_scale("web").await.unwrap();
    assert_eq!(scale.status.unwrap().replicas, 4);
    api.patch_scale("web", &PatchParams::default(), &Patch::Merge(json!({"spec": {"replicas": 0}}))).await.unwrap();
    cluster.settled().await;
    assert_eq!(cluster.objects("", "pods").len(), 0);
    assert_eq!(condition(&cluster, "web", "Available")["status"], "True");
}

#[tokio::test(start_paused = true)]
async fn a_deployment_adopts_the_orphans_of_its_predecessor() {
    let (cluster, client) = start().await;
    create(&client, "web", 2).await;
    cluster.settled().await;
    let uids = || -> Vec<String> {
        cluster.objects("", "pods").iter().map(|pod| pod["metadata"]["uid"].as_str().unwrap().to_owned()).collect()
    };
    let before = uids();
    let orphan = DeleteParams { propagation_policy: Some(PropagationPolicy::Orphan), ..Default::default() };
    deployments(&client).delete("web", &orphan).await.unwrap();
    cluster.settled().await;
    create(&client, "web", 2).await;
    cluster.settled().await;
    assert_eq!(uids(), before);
    assert_eq!(status(&cluster, "web")["readyReplicas"], 2);
}

/// Creates a ConfigMap that has an owner.
async fn owned(client: &Client, name: &str, owner: &str, blocks: bool) {
    let api = config_maps(client);
    let uid = match api.get_opt(owner).await.unwrap() {
        Some(owner) => owner.metadata.uid.unwrap(),
        None => "00000000-0000-4000-8000-000000000000".into(),
    };
    let mut value = config_map(name);
    value["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": owner, "uid": uid,
        "blockOwnerDeletion": blocks}]);
    apply(&api, name, "one", value).await.unwrap();
}

fn exists(cluster: &Cluster, name: &str) -> bool {
    cluster.object("", "configmaps", "t", name).is_some()
}

#[tokio::test(start_paused = true)]
async fn dependents_are_deleted_with_their_owner() {
    let (cluster, client) = start().await;
    apply(&config_maps(&client), "owner", "one", config_map("owner")).await.unwrap();
    owned(&client, "child", "owner", true).await;
    owned(&client, "grandchild", "child", true).await;
    config_maps(&client).delete("owner", &DeleteParams::default()).await.unwrap();
    cluster.settled().await;
    assert!(!exists(&cluster, "child") && !exists(&cluster, "grandchild"));
}

#[tokio::test(start_paused = true)]
async fn an_object_whose_owner_never_existed_is_deleted() {
    let (cluster, client) = start().await;
    owned(&client, "child", "nobody", false).await;
    cluster.settled().await;
    assert!(!exists(&cluster, "child"));
}

#[tokio::test(start_paused = true)]
async fn foreground_deletion_waits_for_dependents_that_block_it() {
    let (cluster, client) = start().await;
    let api = config_maps(&client);
    apply(&api, "owner", "one", config_map("owner")).await.unwrap();
    owned(&client, "child", "owner", true).await;
    let hold = json!({"metadata": {"finalizers": ["test.io/hold"]}});
    api.patch("child", &PatchParams::default(), &Patch::Merge(hold)).await.unwrap();
    api.delete("owner", &DeleteParams::foreground()).await.unwrap();
    cluster.settled().await;
    assert!(exists(&cluster, "owner") && exists(&cluster, "child"));
    api.patch("child", &PatchParams::default(), &Patch::Merge(json!({"metadata": {"finalizers": null}})))
        .await
        .unwrap();
    cluster.settled().await;
    assert!(!exists(&cluster, "owner") && !exists(&cluster, "child"));
}

#[tokio::test(start_paused = true)]
async fn orphaned_dependents_stay_without_owner_reference() {
    let (cluster, client) = start().await;
    let api = config_maps(&client);
    apply(&api, "owner", "one", config_map("owner")).await.unwrap();
    owned(&client, "child", "owner", true).await;
    let orphan = DeleteParams { propagation_policy: Some(PropagationPolicy::Orphan), ..Default::default() };
    api.delete("owner", &orphan).await.unwrap();
    cluster.settled().await;
    assert!(!exists(&cluster, "owner") && exists(&cluster, "child"));
    assert_eq!(cluster.object("", "configmaps", "t", "child").unwrap()["metadata"]["ownerReferences"], json!(null));
}

#[tokio::test(start_paused = true)]
async fn a_namespace_ends_when_its_last_finalizer_is_removed() {
    let (cluster, client) = start().await;
    create(&client, "web", 1).await;
    let api = config_maps(&client);
    let mut held = config_map("held");
    held["metadata"]["finalizers"] = json!(["test.io/hold"]);
    apply(&api, "held", "one", held).await.unwrap();
    cluster.settled().await;
    let namespaces = Api::<Namespace>::all(client.clone());
    namespaces.delete("t", &DeleteParams::default()).await.unwrap();
    cluster.settled().await;
    let status = namespaces.get("t").await.unwrap().status.unwrap();
    assert_eq!(status.phase.as_deref(), Some("Terminating"));
    assert!(
        status
            .conditions
            .unwrap()
            .iter()
            .any(|condition| condition.type_ == "NamespaceFinalizersRemaining" && condition.status == "True")
    );
    assert_eq!(code(apply(&api, "late", "one", config_map("late")).await), 403);
    assert_eq!(cluster.objects("", "pods").len(), 0);
    api.patch("held", &PatchParams::default(), &Patch::Merge(json!({"metadata": {"finalizers": null}}))).await.unwrap();
    cluster.settled().await;
    assert!(namespaces.get_opt("t").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn an_event_expires_one_hour_after_its_last_occurrence() {
    let (cluster, client) = start().await;
    let events = api_of(&client, "", "v1", "Event", Some("t"));
    let event = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "type": "Normal", "reason": "Seen",
        "involvedObject": {"kind": "ConfigMap", "namespace": "t", "name": "c"}});
    events.create(&PostParams::default(), &object(event)).await.unwrap();
    tokio::time::sleep(Duration::from_mins(59)).await;
    assert!(cluster.object("", "events", "t", "e").is_some());
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert!(cluster.object("", "events", "t", "e").is_none());
}

#[tokio::test(start_paused = true)]
async fn above_the_limit_the_oldest_events_go() {
    let clock = TokioClock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
    let cluster = Cluster::builder().clock(clock).events(8).start();
    for number in 0..12_u8 {
        let event = json!({"apiVersion": "v1", "kind": "Event",
            "metadata": {"name": format!("e{number:02}"), "namespace": "default",
                "creationTimestamp": format!("2026-01-01T00:00:{number:02}Z")},
            "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"}});
        cluster.plant("", "events", event);
        cluster.settled().await;
    }
    let kept = |number: u8| cluster.object("", "events", "default", &format!("e{number:02}")).is_some();
    let names: Vec<u8> = (0..12).filter(|number| kept(*number)).collect();
    assert!(names.len() <= 8 && names.contains(&11) && !names.contains(&0), "{names:?}");
}
