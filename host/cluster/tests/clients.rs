//! Tests objects through kube-rs: reads, writes, selectors, pages.
#![allow(clippy::unwrap_used, clippy::panic, reason = "what tests share fails by panicking")]

use crate::support::{api_of, apply, code, config_map, config_maps, object, start};
use http_body_util::BodyExt as _;
use kube::{
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions},
    runtime::events,
};
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn a_write_from_an_old_revision_conflicts() {
    let (_cluster, client) = start().await;
    let api = config_maps(&client);
    let first = api.create(&PostParams::default(), &object(config_map("a"))).await.unwrap();
    let mut newer = first.clone();
    newer.data["data"] = json!({"k": "1"});
    api.replace("a", &PostParams::default(), &newer).await.unwrap();
    let mut late = first;
    late.data["data"] = json!({"k": "2"});
    assert_eq!(code(api.replace("a", &PostParams::default(), &late).await), 409);
}

#[tokio::test(start_paused = true)]
async fn a_write_that_changes_nothing_keeps_the_revision() {
    let (cluster, client) = start().await;
    let api = config_maps(&client);
    let applied = apply(&api, "a", "one", config_map("a")).await.unwrap();
    let revision = cluster.revision();
    let again = apply(&api, "a", "one", config_map("a")).await.unwrap();
    assert_eq!(applied.metadata.resource_version, again.metadata.resource_version);
    api.patch("a", &PatchParams::default(), &Patch::Merge(json!({"metadata": {"labels": {}}}))).await.unwrap();
    assert_eq!(cluster.revision(), revision);
}

#[tokio::test(start_paused = true)]
async fn pages_show_one_revision_and_expire_with_it() {
    let (cluster, client) = start().await;
    let api = config_maps(&client);
    for name in ["a", "b", "c", "d"] {
        apply(&api, name, "one", config_map(name)).await.unwrap();
    }
    let first = api.list(&ListParams::default().limit(2)).await.unwrap();
    assert_eq!(first.metadata.remaining_item_count, Some(3));
    apply(&api, "bb", "one", config_map("bb")).await.unwrap();
    let token = first.metadata.continue_.clone().unwrap();
    let rest = api.list(&ListParams::default().limit(10).continue_token(&token)).await.unwrap();
    let names: Vec<&str> = rest.items.iter().map(|item| item.metadata.name.as_deref().unwrap()).collect();
    assert_eq!(names, ["c", "d", "kube-root-ca.crt"]);
    assert_eq!(rest.metadata.resource_version, first.metadata.resource_version);
    cluster.compact();
    assert_eq!(code(api.list(&ListParams::default().continue_token(&token)).await), 410);
}

#[tokio::test(start_paused = true)]
async fn selectors_choose_by_label_and_field() {
    let (_cluster, client) = start().await;
    let api = config_maps(&client);
    for (name, tier) in [("a", "x"), ("b", "y")] {
        let mut value = config_map(name);
        value["metadata"]["labels"] = json!({"tier": tier});
        apply(&api, name, "one", value).await.unwrap();
    }
    let count = async |params: ListParams| api.list(&params).await.unwrap().items.len();
    assert_eq!(count(ListParams::default().labels("tier in (x,z)")).await, 1);
    assert_eq!(count(ListParams::default().labels("tier!=x")).await, 2);
    assert_eq!(count(ListParams::default().fields("metadata.name=b")).await, 1);
    assert_eq!(code(api.list(&ListParams::default().fields("data.k=b")).await), 400);
}

#[tokio::test(start_paused = true)]
async fn names_are_generated() {
    let (_cluster, client) = start().await;
    let api = config_maps(&client);
    let made = object(json!({"metadata": {"generateName": "x-"}}));
    let (a, b) = (
        api.create(&PostParams::default(), &made).await.unwrap(),
        api.create(&PostParams::default(), &made).await.unwrap(),
    );
    assert_ne!(a.metadata.name, b.metadata.name);
    assert_eq!(a.metadata.name.unwrap().len(), 7);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_changes_nothing() {
    let (cluster, client) = start().await;
    let api = config_maps(&client);
    let revision = cluster.revision();
    let made = api.create(&PostParams { dry_run: true, ..Default::default() }, &object(config_map("a"))).await.unwrap();
    assert!(made.metadata.uid.is_some());
    api.delete("kube-root-ca.crt", &DeleteParams::default().dry_run()).await.unwrap();
    assert_eq!(cluster.revision(), revision);
}

#[tokio::test(start_paused = true)]
async fn unknown_fields_are_refused_under_strict_validation() {
    let (_cluster, client) = start().await;
    let api = config_maps(&client);
    let mut value = config_map("a");
    value["nonsense"] = json!(1);
    let strict =
        PatchParams { field_validation: Some(kube::api::ValidationDirective::Strict), ..PatchParams::default() };
    apply(&api, "a", "one", config_map("a")).await.unwrap();
    assert_eq!(code(api.patch("a", &strict, &Patch::Merge(&value)).await), 400);
    let kept = api.patch("a", &PatchParams::default(), &Patch::Merge(&value)).await.unwrap();
    assert_eq!(kept.data["nonsense"], json!(null));
}

#[tokio::test(start_paused = true)]
async fn a_deletion_with_another_uid_is_refused() {
    let (cluster, client) = start().await;
    let api = config_maps(&client);
    apply(&api, "a", "one", config_map("a")).await.unwrap();
    let preconditions = Preconditions { uid: Some("other".into()), resource_version: None };
    assert_eq!(code(api.delete("a", &DeleteParams::default().preconditions(preconditions)).await), 409);
    assert!(cluster.object("", "configmaps", "t", "a").is_some());
}

#[tokio::test(start_paused = true)]
async fn collections_are_deleted_by_selector() {
    let (cluster, client) = start().await;
    let api = config_maps(&client);
    for name in ["a", "b"] {
        let mut value = config_map(name);
        value["metadata"]["labels"] = json!({"n": name});
        apply(&api, name, "one", value).await.unwrap();
    }
    api.delete_collection(&DeleteParams::default(), &ListParams::default().labels("n=a")).await.unwrap();
    assert!(cluster.object("", "configmaps", "t", "a").is_none());
    assert!(cluster.object("", "configmaps", "t", "b").is_some());
}

#[tokio::test(start_paused = true)]
async fn ownership_moves_by_force_and_a_dropped_field_disappears() {
    let (_cluster, client) = start().await;
    let api = config_maps(&client);
    let with = |data: serde_json::Value| {
        let mut value = config_map("a");
        value["data"] = data;
        value
    };
    apply(&api, "a", "one", with(json!({"k": "1", "gone": "1"}))).await.unwrap();
    assert_eq!(code(apply(&api, "a", "two", with(json!({"k": "2"}))).await), 409);
    let forced =
        api.patch("a", &PatchParams::apply("two").force(), &Patch::Apply(with(json!({"k": "2"})))).await.unwrap();
    assert_eq!(forced.data["data"], json!({"k": "2", "gone": "1"}));
    let last = apply(&api, "a", "one", config_map("a")).await.unwrap();
    assert_eq!(last.data["data"], json!({"k": "2"}));
}

#[tokio::test(start_paused = true)]
async fn an_event_is_one_object_in_two_groups() {
    let (_cluster, client) = start().await;
    let new = api_of(&client, "events.k8s.io", "v1", "Event", Some("t"));
    let event = object(json!({"metadata": {"name": "e"}, "note": "text", "regarding": {"name": "x", "kind": "Widget"},
        "eventTime": "2026-01-01T00:00:00.000000Z", "reportingController": "c", "reportingInstance": "i", "action": "A", "reason": "R", "type": "Normal"}));
    new.create(&PostParams::default(), &event).await.unwrap();
    let old = api_of(&client, "", "v1", "Event", Some("t"));
    let found = old.list(&ListParams::default().fields("involvedObject.name=x")).await.unwrap();
    assert_eq!(found.items[0].data["message"], "text");
}

#[tokio::test(start_paused = true)]
async fn rewriting_managed_fields_takes_over_an_updating_clients_fields() {
    let (_cluster, client) = start().await;
    let api = config_maps(&client);
    let mut value = config_map("a");
    value["data"] = json!({"keep": "1", "drop": "1"});
    let old = PostParams { field_manager: Some("old-operator".into()), ..PostParams::default() };
    let made = api.create(&old, &object(value)).await.unwrap();
    let mut managers = serde_json::to_value(made.metadata.managed_fields.unwrap()).unwrap();
    managers[0]["manager"] = json!("new-operator");
    managers[0]["operation"] = json!("Apply");
    let patch: json_patch::Patch = serde_json::from_value(json!([
        {"op": "replace", "path": "/metadata/managedFields", "value": managers},
        {"op": "test", "path": "/metadata/resourceVersion", "value": made.metadata.resource_version}]))
    .unwrap();
    api.patch("a", &PatchParams::default(), &Patch::Json::<()>(patch)).await.unwrap();
    let mut value = config_map("a");
    value["data"] = json!({"keep": "1"});
    let taken = apply(&api, "a", "new-operator", value).await.unwrap();
    assert_eq!(taken.data["data"], json!({"keep": "1"}));
    assert_eq!(taken.metadata.managed_fields.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_recorder_publishes_and_counts_events() {
    let (cluster, client) = start().await;
    let api = config_maps(&client);
    let about = apply(&api, "a", "one", config_map("a")).await.unwrap();
    let reference = k8s_openapi::api::core::v1::ObjectReference {
        kind: Some("ConfigMap".into()),
        name: about.metadata.name,
        namespace: Some("t".into()),
        uid: about.metadata.uid,
        ..Default::default()
    };
    let recorder = events::Recorder::new(client, "test".into());
    for _ in 0..2 {
        let event = events::Event {
            type_: events::EventType::Normal,
            reason: "Because".into(),
            note: Some("text".into()),
            action: "Act".into(),
            secondary: None,
        };
        recorder.publish(&event, &reference).await.unwrap();
    }
    let stored = cluster.objects("", "events");
    let ours: Vec<_> = stored.iter().filter(|event| event["reason"] == "Because").collect();
    assert_eq!((ours.len(), &ours[0]["series"]["count"], &ours[0]["message"]), (1, &json!(2), &json!("text")));
}

#[tokio::test(start_paused = true)]
async fn discovery_finds_every_type_in_two_requests() {
    let (cluster, client) = start().await;
    cluster.journal().clear();
    let found = kube::Discovery::new(client).run_aggregated().await.unwrap();
    let group = found.get("apps").unwrap();
    let (resource, capabilities) = group.recommended_kind("Deployment").unwrap();
    assert_eq!(resource.plural, "deployments");
    assert!(capabilities.supports_operation(kube::discovery::verbs::WATCH));
    assert!(found.has_group("apiextensions.k8s.io"));
    assert_eq!(cluster.journal().entries().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_path_that_is_not_served_gets_a_page_and_not_a_status() {
    let (_cluster, client) = start().await;
    let ask = async |path: &str| {
        let request = http::Request::get(path).body(kube::client::Body::empty()).unwrap();
        let (head, body) = client.send(request).await.unwrap().into_parts();
        assert_eq!(head.status, 404, "{path}");
        let content_type = head.headers["content-type"].to_str().unwrap().to_owned();
        (content_type, String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap())
    };
    let page = ("text/plain; charset=utf-8".to_owned(), "404 page not found\n".to_owned());
    for path in ["/apis/none.io", "/apis/none.io/v1", "/apis/apps/v9", "/api/v9", "/nowhere", "/apis/none.io/v1/things"]
    {
        assert_eq!(ask(path).await, page, "{path}");
    }
    let (content_type, body) = ask("/apis/apps/v1/things").await;
    assert_eq!(content_type, "application/json");
    assert!(body.contains("the server could not find the requested resource"), "{body}");
}
