//! Tests the checklist's rows about errors and deletions, on a real API server.

use kaos_tests::control_plane::audit::Request;
use kaos_tests::harness::read::{condition, reason, text};
use kaos_tests::harness::samples::{agent, model_api};
use serde_json::json;

use crate::support::{Release, USER, until_ready};

#[tokio::test]
async fn a_child_that_the_api_server_refuses_is_reported_once_and_blocks_nothing() {
    let release = Release::install(&[]).await;
    let _operator = release.working_operator().await;
    let world = release.world("refused").await;
    let good = [model_api("llm"), agent("a", "llm", &json!({}))];
    world.apply_all(&good).await;
    until_ready(&world, &good).await;
    // Change the Agent. The new plan has no Service, and the API server rejects the new plan, because the pod has an
    // unknown field.
    let bad = json!({"agentNetwork": {"expose": false}, "container": {"securityContext": {"runAsUsr": 1}}});
    world.apply(&agent("a", "llm", &bad)).await;
    let told = world
        .until("Agent/a has the reason ApplyFailed for Applied", "Agent/a", |object| {
            reason(object, "Applied") == "ApplyFailed"
        })
        .await;
    assert!(text(&condition(&told, "Applied")["message"]).contains("runAsUsr"), "{told:#}");
    let other = agent("b", "llm", &json!({}));
    world.apply(&other).await;
    until_ready(&world, &[other]).await;
    world.quiet().await;
    assert!(!world.look("Service/agent-a").await.is_null(), "the operator pruned the Service although an apply failed");
    let events = world.events("Agent/a").await;
    assert_eq!(events.iter().filter(|(_, reason, _)| reason == "ApplyFailed").count(), 1, "{events:?}");

    let mended = agent("a", "llm", &json!({"agentNetwork": {"expose": false}}));
    world.apply(&mended).await;
    until_ready(&world, &[mended]).await;
    world.until_gone("Service/agent-a").await;
}

#[tokio::test]
async fn an_object_in_deletion_gets_no_children_and_a_deleted_object_is_no_error() {
    let release = Release::install(&[]).await;
    let operator = release.working_operator().await;
    let world = release.world("going").await;
    let mut held = model_api("held");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    world.apply(&held).await;
    until_ready(&world, &[held]).await;
    release.cluster.kubectl(&["delete", "modelapi", "held", "-n", "going", "--wait=false"]).expect();
    // Wait for another object: watch events arrive in order, so when this object is ready, the operator has also seen
    // the deletion.
    let later = model_api("later");
    world.apply(&later).await;
    until_ready(&world, &[later]).await;
    world.delete("ModelAPI/later").await;
    let mark = release.cluster.audit().mark().unwrap();
    world.delete("Deployment/modelapi-held").await;
    world.patch("Service/modelapi-held", &json!({"metadata": {"labels": {"app": "other"}}})).await;
    world.until_gone("Deployment/modelapi-held").await;
    // Meanwhile, create objects and delete each object immediately.
    for number in 0..10 {
        let brief = format!("brief-{number}");
        world.apply(&model_api(&brief)).await;
        world.delete(&format!("ModelAPI/{brief}")).await;
    }
    world.until_true("no Deployment is left", async || world.list("Deployment").await.is_empty()).await;
    world.quiet().await;
    let asked = release.cluster.audit().since(mark, USER).unwrap();
    let done = |request: &&Request| request.writes() && request.name.ends_with("-held") && request.code < 300;
    let made: Vec<_> = asked.iter().filter(done).collect();
    assert!(made.is_empty(), "{made:#?}");
    // The operator may have created children for an object that was already deleted. The garbage collector removes
    // these children.
    world.until_true("no Deployment appears afterwards", async || world.list("Deployment").await.is_empty()).await;
    assert!(operator.is_ready());
    world.patch("ModelAPI/held", &json!({"metadata": {"finalizers": null}})).await;
    world.until_gone("ModelAPI/held").await;
}
