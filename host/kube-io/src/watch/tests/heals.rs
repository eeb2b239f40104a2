//! Tests types, rights and connections that disappear and come back at run time.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use kaos_cluster::faults::{Attempt, EventFate, Failure, FaultPlan, NoFaults, Outcome, Verb, Verdict};
use kaos_objects::lookup::{Lookup as _, Sighting};
use kube::api::DeleteParams;
use serde_json::json;
use tokio::time::Instant;

use super::support::*;
use crate::watch::{Claimed, Coverage, WatchOptions};

async fn remove_definition(bench: &Bench, name: &str) {
    let definitions = api(&bench.client, &of("apiextensions.k8s.io/v1 CustomResourceDefinition"), "");
    definitions.delete(name, &DeleteParams::default()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn objects_that_use_an_optional_type_are_woken_when_the_type_vanishes_and_returns() {
    for watched in [true, false] {
        let bench = Bench::start().await;
        if !watched {
            bench
                .cluster
                .authorise(|attempt| attempt.resource != "customresourcedefinitions" || attempt.user != "operator");
            bench.cluster.cut_watches();
        }
        bench.put(object(&widget(), "a", json!({}))).await;
        bench.put(object(&gadget(), "g", json!({}))).await;
        bench.wakes(&["t/a"]).await;
        let target = named(&gadget(), "t", "g");
        bench.watch.set_needs(&Bench::key("a"), [&target]).unwrap();
        remove_definition(&bench, "gadgets.test.io").await;
        bench.until("gone", |bench| bench.watch.served(&gadget()).is_none()).await;
        assert_eq!(bench.woken(), BTreeSet::from(["t/a".to_owned()]));
        assert_eq!(bench.watch.lookup().look_up(&target), Sighting::Unserved);
        assert!(bench.watch.synced().is_ok() && bench.watch.waiting_for(&widget()).is_empty());
        bench.put(definition("Gadget")).await;
        bench.until("back", |bench| bench.watch.served(&gadget()).is_some() && bench.watch.synced().is_ok()).await;
        assert_eq!(bench.woken(), BTreeSet::from(["t/a".to_owned()]));
        assert_eq!(bench.watch.lookup().look_up(&target), Sighting::Objects(vec![]));
        bench.put(object(&gadget(), "g", json!({}))).await;
        bench.wakes(&["t/a"]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_primary_type_may_be_removed_and_installed_again() {
    let bench = Bench::start().await;
    bench.put(object(&widget(), "a", json!({}))).await;
    bench.wakes(&["t/a"]).await;
    remove_definition(&bench, "widgets.test.io").await;
    bench.until("gone", |bench| bench.watch.served(&widget()).is_none()).await;
    assert_eq!(bench.woken(), BTreeSet::from(["t/a".to_owned()]));
    assert!(bench.watch.object(&Bench::key("a")).is_none());
    bench.put(definition("Widget")).await;
    bench.until("back", |bench| bench.watch.served(&widget()).is_some() && bench.watch.synced().is_ok()).await;
    bench.put(object(&widget(), "b", json!({}))).await;
    bench.wakes(&["t/b"]).await;
}

#[tokio::test(start_paused = true)]
async fn cluster_scoped_objects_are_read_whatever_namespace_a_need_names() {
    let bench = Bench::start().await;
    let target = named(&of("v1 Namespace"), "t", "u");
    assert!(bench.watch.lookup().is_cluster_scoped(&of("v1 Namespace")));
    assert!(matches!(bench.watch.lookup().look_up(&target), Sighting::Objects(found) if found.len() == 1));
    bench.watch.set_needs(&Bench::key("a"), [&target]).unwrap();
    bench.put(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "u", "labels": {"x": "y"}}})).await;
    bench.wakes(&["t/a"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_malformed_object_is_counted_and_the_others_are_followed() {
    let bench = Bench::start().await;
    for (name, uid) in [("odd", json!(7)), ("odder", json!({}))] {
        let object = json!({"apiVersion": "test.io/v1", "kind": "Widget", "spec": 3,
            "metadata": {"name": name, "namespace": "t", "uid": uid, "labels": "none", "ownerReferences": [7]}});
        bench.cluster.plant("test.io", "widgets", object);
    }
    // Nest the value deeper than a parser with a limited stack accepts.
    let deep = (0..200).fold(json!(1), |deep, _| json!({ "a": deep }));
    let deep = json!({"apiVersion": "test.io/v1", "kind": "Widget", "spec": deep,
        "metadata": {"name": "deep", "namespace": "t", "uid": "deep"}});
    bench.cluster.plant("test.io", "widgets", deep);
    bench.put(object(&widget(), "a", json!({}))).await;
    bench.wakes(&["t/a", "t/deep"]).await;
    let told = bench.watch.object(&Bench::key("deep")).unwrap()["spec"].to_string();
    assert!(told.contains("the object cannot be read"), "{told}");
    bench.delete(&widget(), "deep").await;
    bench.wakes(&["t/deep"]).await;
    assert!(bench.watch.object(&Bench::key("deep")).is_none());
    bench.cluster.compact();
    bench.cluster.cut_watches();
    bench.put(object(&widget(), "b", json!({}))).await;
    bench.wakes(&["t/b"]).await;
    let text = bench.metrics.text();
    let line = r#"watch_errors_total{group="test.io",kind="Widget",reason="malformed"}"#;
    assert!(text.contains(line), "{text}");
    assert!(bench.watch.synced().is_ok());
}

#[tokio::test(start_paused = true)]
async fn unreadable_objects_do_not_delay_readable_ones() {
    let bench = Bench::start().await;
    let map = of("v1 ConfigMap");
    // A hundred needs are too many for separate watches.
    let mut targets: Vec<_> = (0..100).map(|number| named(&map, "t", &format!("c{number}"))).collect();
    for number in 0..=100 {
        bench.put(config_map(&format!("c{number}"), "1")).await;
    }
    bench.cluster.set_faults(|attempt: &Attempt, _: &mut fastrand::Rng| {
        let is_it = attempt.verb == Verb::Get && attempt.name == "c7";
        if is_it { Verdict::from(Outcome::FailBefore(Failure::Server(500))) } else { Verdict::default() }
    });
    bench.watch.set_needs(&Bench::key("a"), &targets).unwrap();
    // After ten minutes of failures, the retries are rare.
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert!(bench.requests().iter().any(|entry| entry.attempt.name == "c7"), "the operator tried to read the object");
    targets.push(named(&map, "t", "c100"));
    bench.watch.set_needs(&Bench::key("a"), &targets).unwrap();
    let is_seen = |bench: &Bench| matches!(bench.watch.lookup().look_up(&targets[100]), Sighting::Objects(found) if found.len() == 1);
    bench.until("seen", is_seen).await;
    let again = bench.requests().into_iter().filter(|entry| entry.attempt.name == "c7").count();
    assert_eq!(again, 0, "the readable object did not wait for the unreadable object");
    bench.cluster.set_faults(NoFaults);
    let is_read = |bench: &Bench| matches!(bench.watch.lookup().look_up(&targets[7]), Sighting::Objects(found) if found.len() == 1);
    bench.until("read at last", is_read).await;
}

#[tokio::test(start_paused = true)]
async fn a_settled_watch_asks_for_nothing_but_its_own_renewal() {
    let bench = Bench::start().await;
    bench.put(object(&widget(), "a", json!({}))).await;
    bench.put(config_map("c", "1")).await;
    bench.put(secret("s", "1")).await;
    let (map, secrets) = (of("v1 ConfigMap"), of("v1 Secret"));
    bench.watch.set_needs(&Bench::key("a"), [&named(&map, "t", "c"), &named(&secrets, "t", "s")]).unwrap();
    tokio::time::sleep(Duration::from_mins(1)).await;
    bench.requests();
    bench.woken();
    tokio::time::sleep(Duration::from_mins(30)).await;
    let requests = bench.requests();
    assert!(requests.iter().all(|entry| entry.attempt.verb == Verb::Watch), "{requests:?}");
    // The operator has five stores, two watches on named objects, and the watch on CustomResourceDefinitions. The
    // operator renews each of these eight watches every 261 to 290 seconds.
    assert!((40..=56).contains(&requests.len()), "{}", requests.len());
    assert!(bench.woken().is_empty());
}

#[tokio::test(start_paused = true)]
async fn with_a_missing_optional_type_a_settled_watch_is_as_silent() {
    let bench = Bench::start().await;
    remove_definition(&bench, "gadgets.test.io").await;
    tokio::time::sleep(Duration::from_mins(5)).await;
    bench.requests();
    tokio::time::sleep(Duration::from_mins(30)).await;
    let requests = bench.requests();
    assert!(requests.iter().all(|entry| entry.attempt.verb == Verb::Watch), "{requests:?}");
}

#[tokio::test(start_paused = true)]
async fn a_restored_connection_resumes_the_watch_without_a_list() {
    let bench = Bench::start().await;
    bench.requests();
    bench.cluster.cut_watches();
    bench.put(object(&widget(), "a", json!({}))).await;
    bench.wakes(&["t/a"]).await;
    assert_eq!(bench.requests().iter().filter(|entry| entry.attempt.verb == Verb::List).count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_version_that_the_server_forgot_leads_to_a_list_that_removes_vanished_objects() {
    let bench = Bench::start().await;
    for name in ["a", "b"] {
        bench.put(object(&widget(), name, json!({}))).await;
    }
    bench.wakes(&["t/a", "t/b"]).await;
    bench.cluster.cut_watches();
    bench.delete(&widget(), "a").await;
    bench.put(object(&widget(), "c", json!({}))).await;
    bench.cluster.compact();
    bench.wakes(&["t/a", "t/c"]).await;
    assert!(bench.watch.object(&Bench::key("a")).is_none());
    assert!(bench.watch.trouble(&widget()).is_none());
}

/// Makes the server drop every event except bookmarks.
struct Deaf;

impl FaultPlan for Deaf {
    fn event(&mut self, _: &Attempt, kind: &str, _: &mut fastrand::Rng) -> EventFate {
        if kind == "BOOKMARK" { EventFate::Deliver } else { EventFate::Drop }
    }
}

#[tokio::test(start_paused = true)]
async fn the_next_list_finds_changes_without_events() {
    let bench = Bench::start_with(WatchOptions { relist: Duration::from_mins(10), ..options() }).await;
    bench.put(object(&widget(), "a", json!({}))).await;
    bench.wakes(&["t/a"]).await;
    bench.cluster.set_faults(Deaf);
    bench.delete(&widget(), "a").await;
    bench.put(object(&widget(), "b", json!({}))).await;
    bench.wakes(&[]).await;
    bench.cluster.set_faults(NoFaults);
    tokio::time::sleep(Duration::from_mins(20)).await;
    bench.wakes(&["t/a", "t/b"]).await;
}

/// Makes the server answer to each watch that it forgot the version, and counts the requests for lists.
struct Forgetful(Arc<AtomicUsize>);

impl FaultPlan for Forgetful {
    fn request(&mut self, attempt: &Attempt, _: &mut fastrand::Rng) -> Verdict {
        match attempt.verb {
            Verb::Watch => Outcome::FailBefore(Failure::Server(410)).into(),
            Verb::List => {
                self.0.fetch_add(1, Ordering::Relaxed);
                Verdict::default()
            }
            _ => Verdict::default(),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_forgets_at_once_where_we_were_is_not_asked_without_a_pause() {
    let bench = Bench::start_with(WatchOptions { streaming_lists: false, ..options() }).await;
    bench.put(object(&widget(), "a", json!({}))).await;
    bench.wakes(&["t/a"]).await;
    let lists = Arc::new(AtomicUsize::new(0));
    bench.cluster.set_faults(Forgetful(Arc::clone(&lists)));
    bench.cluster.cut_watches();
    tokio::time::sleep(Duration::from_mins(10)).await;
    let asked = lists.load(Ordering::Relaxed);
    assert!((10..1_000).contains(&asked), "{asked} lists in ten minutes");
    bench.cluster.set_faults(NoFaults);
    bench.put(object(&widget(), "b", json!({}))).await;
    bench.until("it is followed again", |bench| bench.watch.object(&Bench::key("b")).is_some()).await;
    bench.wakes(&["t/b"]).await;
}

/// Makes the server refuse watches for a while, and then answer that it forgot the version of the watch. Records the
/// time of this answer, and the time of the next list.
struct Restored {
    refused: usize,
    forgot: Arc<Mutex<Option<Instant>>>,
    listed: Arc<Mutex<Option<Instant>>>,
}

impl FaultPlan for Restored {
    fn request(&mut self, attempt: &Attempt, _: &mut fastrand::Rng) -> Verdict {
        let mut forgot = self.forgot.lock().unwrap();
        match attempt.verb {
            Verb::Watch if self.refused > 0 => {
                self.refused -= 1;
                Outcome::FailBefore(Failure::Server(503)).into()
            }
            Verb::Watch if attempt.resource == "widgets" && forgot.is_none() => {
                *forgot = Some(Instant::now());
                Outcome::FailBefore(Failure::Server(410)).into()
            }
            Verb::List if attempt.resource == "widgets" && forgot.is_some() => {
                self.listed.lock().unwrap().get_or_insert(Instant::now());
                Verdict::default()
            }
            _ => Verdict::default(),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_long_failure_a_server_that_forgot_where_we_were_is_asked_for_a_list_at_once() {
    let bench = Bench::start_with(WatchOptions { streaming_lists: false, ..options() }).await;
    bench.put(object(&widget(), "a", json!({}))).await;
    bench.wakes(&["t/a"]).await;
    let (forgot, listed) = (Arc::default(), Arc::default());
    let restored = Restored { refused: 24, forgot: Arc::clone(&forgot), listed: Arc::clone(&listed) };
    bench.cluster.set_faults(restored);
    bench.cluster.cut_watches();
    bench.delete(&widget(), "a").await;
    bench.until("the watch reports it", |bench| bench.watch.object(&Bench::key("a")).is_none()).await;
    let (forgot, listed) = (*forgot.lock().unwrap(), *listed.lock().unwrap());
    assert!(forgot.is_some() && forgot == listed, "{forgot:?}, {listed:?}");
}

#[tokio::test(start_paused = true)]
async fn a_type_that_is_covered_later_is_watched_and_one_that_is_not_any_more_is_dropped() {
    let bench = Bench::start().await;
    bench.put(object(&widget(), "a", json!({}))).await;
    bench.put(object(&gadget(), "g", json!({}))).await;
    bench.wakes(&["t/a"]).await;
    let mut coverage = Coverage::default();
    coverage.add(&gadget(), Claimed { emits: [of("v1 Service")].into(), ..Claimed::default() });
    bench.watch.cover(coverage);
    bench.until("synced", |bench| bench.watch.synced().is_ok()).await;
    bench.wakes(&["t/g"]).await;
    assert!(bench.watch.keys(&widget()).is_empty());
    assert_eq!(bench.watch.keys(&gadget()).len(), 1);
    let text = bench.metrics.text();
    assert!(text.contains(r#"group="test.io",kind="Gadget",state="synced"} 1"#), "{text}");
}
