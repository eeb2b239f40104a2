//! Tests custom resources. The cluster serves a type while its CustomResourceDefinition exists. The schema validates
//! the objects and adds defaults.
#![allow(clippy::unwrap_used, clippy::panic, reason = "what tests share fails by panicking")]

use crate::support::{api_of, apply, code, definition, install, object, start, widget, widgets};
use kube::{
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    discovery,
};
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn a_type_is_served_while_its_definition_exists() {
    let (cluster, client) = start().await;
    let api = widgets(&client);
    let text = apply(&api, "w", "one", widget("w", &json!({}))).await.unwrap_err();
    assert!(text.to_string().contains("404"), "{text}");
    install(&cluster, &client, &json!({"type": "object"})).await;
    apply(&api, "w", "one", widget("w", &json!({}))).await.unwrap();
    let group = discovery::group(&client, "test.io").await.unwrap();
    assert_eq!(group.recommended_resources()[0].0.kind, "Widget");
    let definitions = api_of(&client, "apiextensions.k8s.io", "v1", "CustomResourceDefinition", None);
    definitions.delete("widgets.test.io", &DeleteParams::default()).await.unwrap();
    cluster.settled().await;
    assert!(cluster.objects("test.io", "widgets").is_empty());
    assert!(discovery::group(&client, "test.io").await.is_err());
    install(&cluster, &client, &json!({"type": "object"})).await;
    assert!(api.list(&ListParams::default()).await.unwrap().items.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_definition_waits_for_objects_with_finalizers() {
    let (cluster, client) = start().await;
    install(&cluster, &client, &json!({"type": "object"})).await;
    let api = widgets(&client);
    let mut held = widget("w", &json!({}));
    held["metadata"]["finalizers"] = json!(["test.io/hold"]);
    apply(&api, "w", "one", held).await.unwrap();
    let definitions = api_of(&client, "apiextensions.k8s.io", "v1", "CustomResourceDefinition", None);
    definitions.delete("widgets.test.io", &DeleteParams::default()).await.unwrap();
    cluster.settled().await;
    assert!(definitions.get_opt("widgets.test.io").await.unwrap().is_some());
    assert_eq!(code(apply(&api, "late", "one", widget("late", &json!({}))).await), 405);
    api.patch("w", &PatchParams::default(), &Patch::Merge(json!({"metadata": {"finalizers": null}}))).await.unwrap();
    cluster.settled().await;
    assert!(definitions.get_opt("widgets.test.io").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn old_objects_get_the_defaults_of_a_newer_schema_when_they_are_read() {
    let (cluster, client) = start().await;
    install(&cluster, &client, &json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})).await;
    let api = widgets(&client);
    apply(&api, "w", "one", widget("w", &json!({"old": 1}))).await.unwrap();
    install(&cluster, &client, &json!({"type": "object", "properties": {"mode": {"type": "string", "default": "a"}}}))
        .await;
    let found = api.get("w").await.unwrap();
    assert_eq!(found.data["spec"], json!({"mode": "a"}));
}

#[tokio::test(start_paused = true)]
async fn a_new_object_has_the_default_of_the_status_and_not_the_status_that_a_user_sent() {
    let (cluster, client) = start().await;
    let mut definition = definition(&json!({"type": "object"}));
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"] = json!({"type": "object",
        "default": {"observedGeneration": -1}, "properties": {"observedGeneration": {"type": "integer"},
            "ready": {"type": "boolean", "default": false}}});
    let definitions = api_of(&client, "apiextensions.k8s.io", "v1", "CustomResourceDefinition", None);
    apply(&definitions, "widgets.test.io", "test", definition).await.unwrap();
    cluster.settled().await;
    let api = widgets(&client);
    let wanted = json!({"observedGeneration": -1, "ready": false});
    let mut sent = widget("w", &json!({}));
    sent["status"] = json!({"observedGeneration": 7, "ready": true});
    let made = apply(&api, "w", "one", sent).await.unwrap();
    assert_eq!((&made.data["status"], &api.get("w").await.unwrap().data["status"]), (&wanted, &wanted));
    assert_eq!(cluster.objects("test.io", "widgets")[0]["status"], wanted, "the stored object has this status too");
}

#[tokio::test(start_paused = true)]
async fn an_object_that_an_older_schema_left_behind_can_be_planted_and_read() {
    let (cluster, client) = start().await;
    install(&cluster, &client, &json!({"type": "object", "properties": {"n": {"type": "integer"}}})).await;
    cluster.plant(
        "test.io",
        "widgets",
        json!({"apiVersion": "test.io/v1", "kind": "Widget",
        "metadata": {"name": "bad", "namespace": "t"}, "spec": {"n": "many"}}),
    );
    assert_eq!(widgets(&client).get("bad").await.unwrap().data["spec"]["n"], "many");
}

#[tokio::test(start_paused = true)]
async fn rules_see_the_old_object() {
    let (cluster, client) = start().await;
    let spec = json!({"type": "object", "properties": {"fixed": {"type": "string",
        "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "is immutable"}]}}});
    install(&cluster, &client, &spec).await;
    let api = widgets(&client);
    apply(&api, "w", "one", widget("w", &json!({"fixed": "a"}))).await.unwrap();
    let refused = apply(&api, "w", "one", widget("w", &json!({"fixed": "b"}))).await.unwrap_err();
    assert!(refused.to_string().contains("is immutable"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn two_versions_show_the_same_objects() {
    let (cluster, client) = start().await;
    let mut both = definition(&json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}));
    let mut second = both["spec"]["versions"][0].clone();
    second["name"] = json!("v2");
    second["storage"] = json!(false);
    both["spec"]["versions"].as_array_mut().unwrap().push(second);
    let definitions = api_of(&client, "apiextensions.k8s.io", "v1", "CustomResourceDefinition", None);
    apply(&definitions, "widgets.test.io", "test", both).await.unwrap();
    cluster.settled().await;
    let newer = api_of(&client, "test.io", "v2", "Widget", Some("t"));
    let made = newer
        .create(
            &PostParams::default(),
            &object(json!({"apiVersion": "test.io/v2", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"a": 1}})),
        )
        .await
        .unwrap();
    assert_eq!(made.types.unwrap().api_version, "test.io/v2");
    assert_eq!(widgets(&client).get("w").await.unwrap().types.unwrap().api_version, "test.io/v1");
}

#[tokio::test(start_paused = true)]
async fn the_generation_counts_only_changes_of_the_spec() {
    let (cluster, client) = start().await;
    install(&cluster, &client, &json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})).await;
    let api = widgets(&client);
    apply(&api, "w", "one", widget("w", &json!({"a": 1}))).await.unwrap();
    let generation = async || api.get("w").await.unwrap().metadata.generation.unwrap();
    let status = json!({"status": {"phase": "Ready"}, "spec": {"a": 9}});
    api.patch_status("w", &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
    api.patch(
        "w",
        &PatchParams::default(),
        &Patch::Merge(json!({"metadata": {"labels": {"l": "1"}}, "status": {"phase": "No"}})),
    )
    .await
    .unwrap();
    assert_eq!(generation().await, 1);
    assert_eq!(api.get("w").await.unwrap().data["status"]["phase"], "Ready");
    apply(&api, "w", "one", widget("w", &json!({"a": 2}))).await.unwrap();
    assert_eq!(generation().await, 2);
    assert_eq!(code(api.get("other").await), 404);
}
