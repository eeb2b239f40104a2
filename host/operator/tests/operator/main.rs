//! Tests the operator on an embedded cluster, with a policy that is compiled into this process. These are quick checks
//! for every change; the complete suites are in `tests/suites`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod kite;
mod scopes;
mod stage;
mod stalling;

use std::time::Duration;

use kaos_cluster::faults::{Attempt, Failure, Outcome, Verb};
use kaos_operator::operator::Compute;
use serde_json::{Value, json};
use stage::Stage;

#[tokio::test(start_paused = true)]
async fn new_object_gets_children_a_ready_status_and_one_event() {
    let stage = Stage::start().await;
    stage.apply(&kite::object("a", &json!({"image": "x", "config": "v"}))).await;
    let object = stage.until_ready("a").await;
    let status = &object["status"];
    assert_eq!(status["phase"], "Ready");
    assert_eq!(status["observedGeneration"], 1);
    assert_eq!(status["appliedGeneration"], 1);
    assert!(stage.child("apps", "deployments", "kite-a").is_some());
    assert!(stage.child("", "services", "kite-a").is_some());
    let events = stage.events("a");
    assert_eq!(events, ["Ready"]);
}

#[tokio::test(start_paused = true)]
async fn explanation_of_an_object_runs_outside_the_request_threads() {
    let stage = Stage::start_on(Compute::Pool).await;
    stage.apply(&kite::object("explained", &json!({"image": "x"}))).await;
    stage.until_ready("explained").await;
    stage.rest().await;
    let translated = || {
        let all = kite::TRANSLATED.lock().unwrap();
        all.iter().filter(|(name, _)| name == "explained").map(|(_, thread)| *thread).collect::<Vec<_>>()
    };
    let before = translated().len();
    let told = stage.explained("explained").await.unwrap();
    assert!(told["plan"].is_object() && told["error"].is_null(), "{told}");
    let threads = translated().split_off(before);
    assert!(!threads.is_empty() && !threads.contains(&std::thread::current().id()), "{threads:?}");
}

#[tokio::test(start_paused = true)]
async fn stalled_policy_is_asked_again_and_not_blamed() {
    let stage = Stage::start().await;
    stage.apply(&kite::object("stalls", &json!({"image": "x"}))).await;
    let object = stage.until_ready("stalls").await;
    assert_eq!(object["status"]["phase"], "Ready");
    assert_eq!(stage.events("stalls"), ["Ready"], "a stall causes no Event");
}

#[tokio::test(start_paused = true)]
async fn creation_takes_one_write_for_each_child_and_one_for_the_status() {
    let stage = Stage::start().await;
    stage.cluster.journal().clear();
    stage.apply(&kite::object("a", &json!({"image": "x", "config": "v"}))).await;
    stage.until_ready("a").await;
    stage.rest().await;
    let mut writes: Vec<String> = stage.writes();
    writes.sort();
    assert_eq!(
        writes,
        ["patch configmaps kite-a", "patch deployments kite-a", "patch kites/status a", "patch services kite-a",]
    );
}

#[tokio::test(start_paused = true)]
async fn settled_object_causes_no_writes_even_after_a_restart() {
    let mut stage = Stage::start().await;
    stage.apply(&kite::object("a", &json!({"image": "x", "config": "v"}))).await;
    stage.until_ready("a").await;
    stage.rest().await;
    stage.cluster.journal().clear();
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!(stage.writes(), [""; 0]);
    assert_eq!(stage.reads(), [""; 0]);
    stage.restart().await;
    stage.rest().await;
    assert_eq!(stage.writes(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn drift_is_repaired_and_labels_of_others_stay() {
    let stage = Stage::start().await;
    stage.apply(&kite::object("a", &json!({"image": "x", "config": "v"}))).await;
    stage.until_ready("a").await;
    stage
        .patch(
            "",
            "services",
            "kite-a",
            json!({"metadata": {"labels": {"theirs": "1"}}, "spec": {"ports": [{"port": 81}]}}),
        )
        .await;
    let service = stage
        .until("the port is back", |stage| {
            let service = stage.child("", "services", "kite-a")?;
            (service["spec"]["ports"][0]["port"] == 80).then_some(service)
        })
        .await;
    assert_eq!(service["metadata"]["labels"]["theirs"], "1");
    stage.delete("apps", "deployments", "kite-a").await;
    stage.until("the deployment is back", |stage| stage.child("apps", "deployments", "kite-a")).await;
    stage.until_ready("a").await;
}

#[tokio::test(start_paused = true)]
async fn child_that_leaves_the_plan_is_deleted() {
    let stage = Stage::start().await;
    stage.apply(&kite::object("a", &json!({"image": "x", "config": "v"}))).await;
    stage.until_ready("a").await;
    stage.apply(&kite::object("a", &json!({"image": "x"}))).await;
    stage.until_none("the configuration", |stage| stage.child("", "configmaps", "kite-a")).await;
    stage.until_ready("a").await;
}

#[tokio::test(start_paused = true)]
async fn child_name_taken_by_another_owner_is_left_alone_until_deleted() {
    let stage = Stage::start().await;
    let theirs = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "kite-a", "namespace": "t"},
        "spec": {"ports": [{"port": 99}]}});
    stage.apply(&theirs).await;
    stage.apply(&kite::object("a", &json!({"image": "x"}))).await;
    let object = stage.until_condition("a", "Applied", "OwnershipConflict").await;
    assert!(object["status"]["conditions"].to_string().contains("Service kite-a"));
    stage.rest().await;
    let service = stage.child("", "services", "kite-a").unwrap();
    assert_eq!(service["spec"]["ports"][0]["port"], 99);
    stage.delete("", "services", "kite-a").await;
    stage.until_ready("a").await;
    assert_eq!(stage.child("", "services", "kite-a").unwrap()["spec"]["ports"][0]["port"], 80);
}

#[tokio::test(start_paused = true)]
async fn plan_gates_hold_back_the_first_apply_only() {
    let stage = Stage::start().await;
    stage.apply(&kite::object("a", &json!({"image": "x", "waitsFor": "wind"}))).await;
    stage.until_condition("a", "Resolved", "NotFound").await;
    stage.apply(&wind("calm")).await;
    stage.until_condition("a", "Applied", "Gated").await;
    assert!(stage.child("apps", "deployments", "kite-a").is_none());
    stage.apply(&wind("strong")).await;
    stage.until_ready("a").await;
    stage.apply(&wind("calm")).await;
    stage.rest().await;
    stage.apply(&kite::object("a", &json!({"image": "y", "waitsFor": "wind"}))).await;
    stage
        .until("the new image", |stage| {
            let deployment = stage.child("apps", "deployments", "kite-a")?;
            (deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "y").then_some(())
        })
        .await;
}

fn wind(force: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "wind", "namespace": "t"}, "data": {"force": force}})
}

#[tokio::test(start_paused = true)]
async fn refused_object_keeps_its_children_and_reports_the_reason() {
    let stage = Stage::start().await;
    stage.apply(&kite::object("a", &json!({"image": "x"}))).await;
    stage.until_ready("a").await;
    stage.apply(&kite::object("a", &json!({"image": ""}))).await;
    let object = stage.until_condition("a", "Accepted", "InvalidSpec").await;
    assert_eq!(object["status"]["phase"], "Failed");
    assert!(stage.child("apps", "deployments", "kite-a").is_some());
    stage.apply(&kite::object("a", &json!({"image": "panic"}))).await;
    stage.until_condition("a", "Accepted", "PolicyFailed").await;
    assert!(stage.child("apps", "deployments", "kite-a").is_some());
    stage.apply(&kite::object("a", &json!({"image": "x"}))).await;
    stage.until_ready("a").await;
}

#[tokio::test(start_paused = true)]
async fn takeover_of_children_restarts_no_pod() {
    let mut stage = Stage::start().await;
    stage.apply(&kite::object("a", &json!({"image": "x", "config": "v"}))).await;
    stage.until_ready("a").await;
    stage.stop().await;
    stage.make_it_look_earlier("kite-a").await;
    let before = stage.child("apps", "deployments", "kite-a").unwrap();
    stage.start_operator().await;
    stage
        .until("our label", |stage| {
            let deployment = stage.child("apps", "deployments", "kite-a")?;
            (deployment["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "kaos-operator").then_some(())
        })
        .await;
    stage.rest().await;
    let after = stage.child("apps", "deployments", "kite-a").unwrap();
    assert_eq!(before["spec"]["template"], after["spec"]["template"]);
    assert!(after["spec"]["paused"].is_null(), "a field that only the earlier operator wanted is gone: {after}");
}

#[tokio::test(start_paused = true)]
async fn finalizer_stays_until_children_are_deleted_in_order() {
    let stage = Stage::start().await;
    let mut object = kite::object("a", &json!({"image": "x", "config": "v", "hold": true}));
    object["metadata"]["finalizers"] = json!(["theirs.io/keep"]);
    stage.apply(&object).await;
    let ready = stage.until_ready("a").await;
    assert_eq!(ready["metadata"]["finalizers"], json!(["theirs.io/keep", "sky.io/hold"]));
    stage.cluster.journal().clear();
    stage.delete("sky.io", "kites", "a").await;
    stage
        .until("the operator's finalizer is gone", |stage| {
            let object = stage.child("sky.io", "kites", "a")?;
            (object["metadata"]["finalizers"] == json!(["theirs.io/keep"])).then_some(())
        })
        .await;
    let deletions: Vec<_> = stage.writes().into_iter().filter(|write| write.starts_with("delete ")).collect();
    assert_eq!(deletions, ["delete services kite-a", "delete deployments kite-a", "delete configmaps kite-a"]);
}

#[tokio::test(start_paused = true)]
async fn external_replicas_are_released_without_a_change() {
    let stage = Stage::start().await;
    stage.apply(&kite::object("a", &json!({"image": "x", "replicas": 3}))).await;
    stage.until_ready("a").await;
    let mut object = kite::object("a", &json!({"image": "x", "replicas": 3}));
    object["metadata"]["annotations"] = json!({"kaos.tools/replicas": "external"});
    stage.apply(&object).await;
    stage.rest().await;
    assert_eq!(stage.child("apps", "deployments", "kite-a").unwrap()["spec"]["replicas"], 3);
    stage.patch("apps", "deployments", "kite-a", json!({"spec": {"replicas": 5}})).await;
    stage.rest().await;
    assert_eq!(stage.child("apps", "deployments", "kite-a").unwrap()["spec"]["replicas"], 5);
    stage.apply(&kite::object("a", &json!({"image": "x", "replicas": 3}))).await;
    stage
        .until("the operator's finalizer is back", |stage| {
            (stage.child("apps", "deployments", "kite-a")?["spec"]["replicas"] == 3).then_some(())
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn child_that_the_api_server_refuses_is_reported_and_rarely_retried() {
    let stage = Stage::start().await;
    stage.apply(&kite::object("a", &json!({"image": "x", "misspells": true}))).await;
    stage.until_condition("a", "Applied", "ApplyFailed").await;
    stage.rest().await;
    stage.cluster.journal().clear();
    // The operator retries after 2, 4 and 8 more minutes, because an administrator may have corrected the rule that
    // refused the child. The retries cause no further Events.
    tokio::time::sleep(std::time::Duration::from_mins(20)).await;
    assert_eq!(stage.requests(Verb::is_write), ["patch deployments kite-a"; 3]);
    stage.apply(&kite::object("a", &json!({"image": "x", "replicas": 1}))).await;
    stage.until_ready("a").await;
}

#[tokio::test(start_paused = true)]
async fn temporary_api_errors_are_retried_without_events() {
    let stage = Stage::start().await;
    let mut failures = 2;
    stage.cluster.set_faults(move |attempt: &Attempt, _: &mut _| {
        if attempt.resource == "deployments" && attempt.verb == Verb::Patch && failures > 0 {
            failures -= 1;
            return Outcome::FailBefore(Failure::Server(503)).into();
        }
        Outcome::Proceed.into()
    });
    stage.apply(&kite::object("a", &json!({"image": "x"}))).await;
    stage.until_ready("a").await;
    stage.rest().await;
    assert_eq!(stage.events("a"), ["Ready"]);
    let tries = stage.requests(|verb| verb == Verb::Patch);
    assert!(tries.iter().filter(|tried| *tried == "patch deployments kite-a").count() > 2, "{tries:?}");
}
