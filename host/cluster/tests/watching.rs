//! Tests watches through kube-rs: events, their order, and how clients recover.
#![allow(clippy::unwrap_used, clippy::panic, reason = "what tests share fails by panicking")]

use std::{pin::pin, sync::Arc, time::Duration};

use crate::support::{apply, client, config_map, config_maps, start};
use futures_util::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kaos_cluster::Cluster;
use kaos_cluster::faults::{Attempt, EventFate, FaultPlan};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, WatchEvent, WatchParams},
    core::PartialObjectMeta,
    runtime::{WatchStreamExt as _, reflector, watcher},
};
use serde_json::json;

/// Keeps a store of ConfigMaps up to date until the test ends.
fn reflect(client: &Client, config: watcher::Config) -> reflector::Store<ConfigMap> {
    let (reader, writer) = reflector::store();
    let stream = watcher(Api::<ConfigMap>::namespaced(client.clone(), "t"), config).default_backoff().reflect(writer);
    tokio::spawn(async move { stream.for_each(|_| async {}).await });
    reader
}

async fn wait_for(store: &reflector::Store<ConfigMap>, names: &[&str]) {
    for _ in 0..600 {
        let mut found: Vec<String> = store.state().iter().map(|map| map.metadata.name.clone().unwrap()).collect();
        found.sort();
        if found == names {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the store never contained {names:?}");
}

#[tokio::test(start_paused = true)]
async fn reflectors_follow_with_lists_and_with_streaming_lists() {
    for config in [watcher::Config::default(), watcher::Config::default().streaming_lists()] {
        let (_cluster, client) = start().await;
        let api = config_maps(&client);
        apply(&api, "a", "one", config_map("a")).await.unwrap();
        let store = reflect(&client, config);
        wait_for(&store, &["a", "kube-root-ca.crt"]).await;
        apply(&api, "b", "one", config_map("b")).await.unwrap();
        wait_for(&store, &["a", "b", "kube-root-ca.crt"]).await;
        api.delete("a", &DeleteParams::default()).await.unwrap();
        wait_for(&store, &["b", "kube-root-ca.crt"]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_reflector_recovers_from_410_and_from_broken_connections() {
    let (cluster, client) = start().await;
    let api = config_maps(&client);
    let store = reflect(&client, watcher::Config::default());
    wait_for(&store, &["kube-root-ca.crt"]).await;
    for name in ["a", "b"] {
        cluster.cut_watches();
        apply(&api, name, "one", config_map(name)).await.unwrap();
        api.delete(name, &DeleteParams::default()).await.unwrap();
        cluster.compact();
        apply(&api, "last", "one", config_map("last")).await.unwrap();
        wait_for(&store, &["kube-root-ca.crt", "last"]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_old_revision_is_answered_with_410() {
    let (cluster, client) = start().await;
    let api = config_maps(&client);
    apply(&api, "a", "one", config_map("a")).await.unwrap();
    cluster.compact();
    let mut events = pin!(api.watch(&WatchParams::default(), "1").await.unwrap());
    let Some(Ok(WatchEvent::Error(status))) = events.next().await else { panic!("no error") };
    assert_eq!(status.code, 410);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_with_a_short_history_forgets_old_changes_and_requests() {
    let cluster = Cluster::builder().history(2, 3).start();
    let api = config_maps(&client(&cluster));
    for name in ["a", "b", "c", "d"] {
        let mut map = config_map(name);
        map["metadata"]["namespace"] = json!("t");
        cluster.plant("", "configmaps", map);
    }
    for _ in 0..5 {
        api.get("a").await.unwrap();
    }
    assert_eq!(cluster.journal().entries().len(), 3);
    let mut events = pin!(api.watch(&WatchParams::default(), "1").await.unwrap());
    let Some(Ok(WatchEvent::Error(status))) = events.next().await else { panic!("no error") };
    assert_eq!(status.code, 410);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_no_longer_matches_is_deleted_for_its_watchers() {
    let (_cluster, client) = start().await;
    let api = config_maps(&client);
    let labelled = |label: &str| {
        let mut value = config_map("a");
        value["metadata"]["labels"] = json!({"in": label});
        value
    };
    let revision = api.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    let mut events = pin!(api.watch(&WatchParams::default().labels("in=yes"), &revision).await.unwrap());
    for label in ["no", "yes", "yes", "no"] {
        apply(&api, "a", "one", labelled(label)).await.unwrap();
    }
    let first = events.try_next().await.unwrap().unwrap();
    assert!(matches!(first, WatchEvent::Added(_)), "{first:?}");
    let second = events.try_next().await.unwrap().unwrap();
    assert!(matches!(second, WatchEvent::Deleted(_)), "{second:?}");
}

#[tokio::test(start_paused = true)]
async fn a_watch_sends_bookmarks_and_ends_after_its_timeout() {
    let (_cluster, client) = start().await;
    let api = config_maps(&client);
    let start = tokio::time::Instant::now();
    let events = api.watch(&WatchParams::default().timeout(150), "0").await.unwrap();
    let kinds: Vec<_> = events.try_collect::<Vec<_>>().await.unwrap();
    assert_eq!(start.elapsed(), Duration::from_secs(150));
    assert_eq!(kinds.iter().filter(|event| matches!(event, WatchEvent::Bookmark(_))).count(), 2);
}

#[tokio::test(start_paused = true)]
async fn metadata_watches_carry_only_metadata() {
    let (_cluster, client) = start().await;
    let mut value = config_map("a");
    value["data"] = json!({"secret": "x"});
    apply(&config_maps(&client), "a", "one", value).await.unwrap();
    let api = Api::<PartialObjectMeta<ConfigMap>>::namespaced(client, "t");
    let (reader, writer) = reflector::store();
    let mut stream = pin!(watcher(api, watcher::Config::default()).reflect(writer).applied_objects());
    let first = stream.try_next().await.unwrap().unwrap();
    assert_eq!(first.metadata.name.as_deref(), Some("a"));
    drop(reader);
}

struct Events(Vec<EventFate>);

impl FaultPlan for Events {
    fn event(&mut self, _: &Attempt, kind: &str, _: &mut fastrand::Rng) -> EventFate {
        if kind == "BOOKMARK" { EventFate::Deliver } else { self.0.pop().unwrap_or_default() }
    }
}

#[tokio::test(start_paused = true)]
async fn events_are_duplicated_dropped_expired_and_cut_as_planned() {
    for (fate, wanted) in [(EventFate::Duplicate, 3), (EventFate::Drop, 1), (EventFate::Expire, 0), (EventFate::Cut, 0)]
    {
        let (cluster, client) = start().await;
        let api = config_maps(&client);
        let revision = cluster.revision().to_string();
        cluster.set_faults(Events(vec![fate]));
        let events = api.watch(&WatchParams::default().timeout(5).disable_bookmarks(), &revision).await.unwrap();
        for name in ["a", "b"] {
            apply(&api, name, "one", config_map(name)).await.unwrap();
        }
        let arrived: Vec<_> = events.collect().await;
        let added = arrived.iter().filter(|event| matches!(event, Ok(WatchEvent::Added(_)))).count();
        assert_eq!(added, wanted, "{fate:?}: {arrived:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_cluster_stops_working() {
    let (cluster, client) = start().await;
    let weak = Arc::new(());
    let held = Arc::clone(&weak);
    cluster.set_faults(move |_: &Attempt, _: &mut fastrand::Rng| {
        assert!(Arc::strong_count(&held) > 0);
        kaos_cluster::faults::Verdict::default()
    });
    drop((cluster, client));
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(Arc::strong_count(&weak), 1);
}
