use kaos_cluster::faults::{Entry, Verb};
use kaos_objects::lookup::{Lookup as _, Sighting};
use kube::api::PatchParams;
use serde_json::json;

use super::support::*;
use crate::watch::WatchOptions;

#[tokio::test(start_paused = true)]
async fn objects_are_listed_followed_and_forgotten() {
    let bench = Bench::start().await;
    bench.put(object(&widget(), "a", json!({"x": 1}))).await;
    bench.wakes(&["t/a"]).await;
    let seen = bench.watch.object(&Bench::key("a")).unwrap();
    assert_eq!(seen["spec"]["x"], 1);
    assert!(seen["metadata"]["managedFields"].is_null());
    assert_eq!(bench.watch.keys(&widget()), [Bench::key("a")]);
    bench.delete(&widget(), "a").await;
    bench.wakes(&["t/a"]).await;
    assert!(bench.watch.object(&Bench::key("a")).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_change_of_its_own_status_does_not_wake_an_object_but_those_that_need_it() {
    let bench = Bench::start().await;
    for name in ["a", "b"] {
        bench.put(object(&widget(), name, json!({}))).await;
    }
    assert!(bench.watch.set_needs(&Bench::key("b"), [&named(&widget(), "t", "a")]).unwrap());
    bench.quiet().await;
    bench.woken();
    let patch = json!({"status": {"ready": true}});
    let api = api(&bench.client, &widget(), "t");
    api.patch_status("a", &PatchParams::default(), &kube::api::Patch::Merge(patch)).await.unwrap();
    bench.wakes(&["t/b"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_needed_object_that_does_not_exist_wakes_when_it_appears() {
    let bench = Bench::start().await;
    let target = named(&gadget(), "t", "g");
    let lookup = bench.watch.lookup();
    assert_eq!(lookup.look_up(&target), Sighting::Objects(vec![]));
    assert!(lookup.pending().is_empty(), "the absence is known");
    bench.watch.set_needs(&Bench::key("a"), [&target]).unwrap();
    bench.put(object(&gadget(), "g", json!({}))).await;
    bench.put(object(&gadget(), "other", json!({}))).await;
    bench.wakes(&["t/a"]).await;
    let Sighting::Objects(found) = bench.watch.lookup().look_up(&target) else { panic!() };
    assert_eq!(found[0]["metadata"]["name"], "g");
    bench.watch.forget(&Bench::key("a"));
    bench.delete(&gadget(), "g").await;
    bench.wakes(&[]).await;
}

#[tokio::test(start_paused = true)]
async fn needs_by_label_see_objects_enter_and_leave_the_selection() {
    let bench = Bench::start().await;
    let target = labelled(&gadget(), "team", "one");
    bench.watch.set_needs(&Bench::key("a"), [&target]).unwrap();
    let with_label = |value: &str| {
        let mut gadget = object(&gadget(), "g", json!({}));
        gadget["metadata"]["labels"] = json!({"team": value});
        gadget
    };
    for (value, seen, woken) in [("two", 0, &[][..]), ("one", 1, &["t/a"]), ("two", 0, &["t/a"]), ("three", 0, &[])] {
        bench.put(with_label(value)).await;
        bench.wakes(woken).await;
        let Sighting::Objects(found) = bench.watch.lookup().look_up(&target) else { panic!() };
        assert_eq!(found.len(), seen, "{value}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_child_wakes_its_owner_and_is_found_by_it() {
    let bench = Bench::start().await;
    let owner = bench.put(object(&widget(), "a", json!({}))).await;
    bench.wakes(&["t/a"]).await;
    bench.put(child(&owner, "c", true)).await;
    bench.put(config_map("not-ours", "1")).await;
    bench.wakes(&["t/a"]).await;
    let uid = owner["metadata"]["uid"].as_str().unwrap();
    let children = bench.watch.children(uid);
    assert_eq!(children.len(), 1);
    assert_eq!(children[0].object().unwrap()["data"]["x"], "1");
    bench.delete(&of("v1 ConfigMap"), "c").await;
    bench.wakes(&["t/a"]).await;
    assert!(bench.watch.children(uid).is_empty());
    assert!(
        bench.watch.live(&of("v1 ConfigMap"), "t", "not-ours").is_none(),
        "the cache keeps only objects with the \
        operator's label"
    );
}

#[tokio::test(start_paused = true)]
async fn children_of_an_operator_before_us_are_found_once_by_their_owner() {
    let (cluster, client) = cluster(0);
    Bench::prepare(&cluster, &client).await;
    let owner = put(&client, object(&widget(), "a", json!({}))).await;
    put(&client, child(&owner, "old", false)).await;
    let bench = Bench::attach(cluster, client, options());
    bench.until("synced", |bench| bench.watch.synced().is_ok()).await;
    bench.wakes(&["t/a"]).await;
    let uid = owner["metadata"]["uid"].as_str().unwrap();
    let children = bench.watch.children(uid);
    assert_eq!((children.len(), children[0].name.as_str(), children[0].is_known()), (1, "old", false));
    let taken = bench.put(child(&owner, "old", true)).await;
    bench.watch.wrote(&taken);
    assert!(bench.watch.children(uid)[0].is_known());
    bench.watch.deleted(&of("v1 ConfigMap"), "t", "old", taken["metadata"]["uid"].as_str().unwrap());
    assert!(bench.watch.children(uid).is_empty());
}

#[tokio::test(start_paused = true)]
async fn our_own_writes_count_at_once_and_wake_others_but_not_the_writer() {
    let bench = Bench::start().await;
    let owner = bench.put(object(&widget(), "a", json!({}))).await;
    bench.watch.set_needs(&Bench::key("b"), [&named(&widget(), "t", "a")]).unwrap();
    bench.quiet().await;
    bench.woken();
    let written = bench.put(child(&owner, "c", true)).await;
    bench.watch.wrote(&written);
    assert_eq!(bench.watch.children(owner["metadata"]["uid"].as_str().unwrap()).len(), 1);
    let mut status = owner.clone();
    status["status"] = json!({"ready": true});
    let api = api(&bench.client, &widget(), "t");
    let patch = kube::api::Patch::Merge(json!({"status": {"ready": true}}));
    let answer = api.patch_status("a", &PatchParams::default(), &patch).await.unwrap();
    bench.watch.wrote(&serde_json::to_value(answer).unwrap());
    assert_eq!(bench.watch.object(&Bench::key("a")).unwrap()["status"]["ready"], true);
    bench.wakes(&["t/b"]).await;
}

#[tokio::test(start_paused = true)]
async fn needed_config_maps_are_watched_by_name_while_an_object_needs_them() {
    let bench = Bench::start().await;
    bench.put(config_map("c", "1")).await;
    bench.put(config_map("unneeded", "1")).await;
    let target = named(&of("v1 ConfigMap"), "t", "c");
    let lookup = bench.watch.lookup();
    lookup.look_up(&target);
    assert_eq!(lookup.pending(), std::slice::from_ref(&target));
    assert!(!bench.watch.set_needs(&Bench::key("a"), [&target]).unwrap());
    bench.wakes(&["t/a"]).await;
    let value = |bench: &Bench| {
        let lookup = bench.watch.lookup();
        let Sighting::Objects(found) = lookup.look_up(&target) else { panic!() };
        assert!(lookup.pending().is_empty());
        found.first().map(|found| found["data"]["x"].as_str().unwrap().to_owned())
    };
    assert_eq!(value(&bench).as_deref(), Some("1"));
    assert!(bench.watch.set_needs(&Bench::key("b"), [&target]).unwrap(), "the state of the need is already known");
    bench.put(config_map("c", "2")).await;
    bench.wakes(&["t/a", "t/b"]).await;
    assert_eq!(value(&bench).as_deref(), Some("2"));
    bench.delete(&of("v1 ConfigMap"), "c").await;
    bench.wakes(&["t/a", "t/b"]).await;
    assert_eq!(value(&bench), None);
    let is_read = |entry: &Entry| entry.attempt.resource == "configmaps" && entry.attempt.verb == Verb::Get;
    let reads = bench.requests().iter().filter(|entry| is_read(entry)).count();
    assert_eq!(reads, 0, "the watch contains the whole object");
    bench.watch.forget(&Bench::key("a"));
    bench.watch.forget(&Bench::key("b"));
    bench.quiet().await;
    let lookup = bench.watch.lookup();
    lookup.look_up(&target);
    assert_eq!(lookup.pending().len(), 1, "no object needs the ConfigMap any more");
}

#[tokio::test(start_paused = true)]
async fn of_secrets_only_facts_are_kept() {
    let bench = Bench::start().await;
    bench.put(secret("s", "hunter2")).await;
    let target = named(&of("v1 Secret"), "t", "s");
    bench.watch.set_needs(&Bench::key("a"), [&target]).unwrap();
    bench.wakes(&["t/a"]).await;
    let facts = |bench: &Bench| {
        let Sighting::Secret(facts) = bench.watch.lookup().look_up(&target) else { panic!() };
        facts
    };
    let before = facts(&bench);
    assert_eq!((before.present, before.keys.as_slice()), (true, &["password".to_owned()][..]));
    bench.put(secret("s", "hunter3")).await;
    bench.wakes(&["t/a"]).await;
    assert_ne!(before.digest, facts(&bench).digest);
    bench.delete(&of("v1 Secret"), "s").await;
    bench.wakes(&["t/a"]).await;
    assert!(!facts(&bench).present);
}

#[tokio::test(start_paused = true)]
async fn without_leave_secrets_are_not_looked_at_and_the_answer_names_the_flag() {
    let bench = Bench::start_with(WatchOptions { secrets: false, ..options() }).await;
    let target = named(&of("v1 Secret"), "t", "s");
    assert!(bench.watch.set_needs(&Bench::key("a"), [&target]).unwrap());
    let Sighting::Forbidden(why) = bench.watch.lookup().look_up(&target) else { panic!() };
    assert!(why.contains("--watch-secrets"), "{why}");
    bench.quiet().await;
    assert!(!bench.requests().iter().any(|entry| entry.attempt.resource == "secrets"));
}

#[tokio::test(start_paused = true)]
async fn many_needed_names_become_one_watch_of_metadata_and_back() {
    let bench = Bench::start().await;
    let map = of("v1 ConfigMap");
    let targets: Vec<_> = (0..12).map(|i| named(&map, "t", &format!("c{i:02}"))).collect();
    for i in 0..11 {
        bench.put(config_map(&format!("c{i:02}"), "1")).await;
    }
    bench.quiet().await;
    bench.requests();
    bench.watch.set_needs(&Bench::key("a"), &targets).unwrap();
    bench.wakes(&["t/a"]).await;
    let watches = |bench: &Bench| {
        let requests = bench.requests();
        requests.iter().filter(|entry| entry.attempt.verb.name() == "watch").count()
    };
    assert_eq!(watches(&bench), 1);
    let count = |bench: &Bench| {
        let lookup = bench.watch.lookup();
        let found = targets
            .iter()
            .filter(|target| matches!(lookup.look_up(target), Sighting::Objects(found) if found.len() == 1));
        (found.count(), lookup.pending().len())
    };
    assert_eq!(count(&bench), (11, 0));
    bench.put(config_map("c11", "1")).await;
    bench.put(config_map("c99", "1")).await;
    bench.wakes(&["t/a"]).await;
    assert_eq!(count(&bench), (12, 0));
    bench.delete(&map, "c03").await;
    bench.wakes(&["t/a"]).await;
    assert_eq!(count(&bench), (11, 0));
    bench.watch.set_needs(&Bench::key("a"), &targets[..3]).unwrap();
    bench.quiet().await;
    assert_eq!(watches(&bench), 3);
    let lookup = bench.watch.lookup();
    assert!(
        targets[..3]
            .iter()
            .all(|target| matches!(lookup.look_up(target), Sighting::Objects(found) if found.len() == 1))
    );
    assert!(lookup.pending().is_empty());
}
