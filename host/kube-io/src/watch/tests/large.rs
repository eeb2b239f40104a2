//! Tests lists of large objects: the pages of the lists, and the memory that the lists take.

use kaos_cluster::faults::Verb;
use kaos_objects::lookup::{Lookup as _, Sighting};
use serde_json::{Value, json};

use super::support::*;
use crate::watch::{WatchOptions, plan::Select};

const MAPS: usize = 12;
const LABELS: usize = 400;

/// Returns a ConfigMap with a long annotation, many labels that no other ConfigMap has, and one label that a selector
/// names.
fn large(number: usize) -> Value {
    let mut map = config_map(&format!("c{number}"), "1");
    let labels: serde_json::Map<String, Value> =
        (0..LABELS).map(|label| (format!("l{number}-{label}"), json!("1"))).collect();
    map["metadata"]["labels"] = labels.into();
    map["metadata"]["labels"][format!("team{number}")] = json!("one");
    map["metadata"]["annotations"] = json!({"long": "x".repeat(20_000)});
    map
}

#[tokio::test(start_paused = true)]
async fn a_watch_on_all_metadata_asks_for_small_pages_and_keeps_the_labels_that_selectors_name() {
    let page_bytes = 100_000;
    let bench = Bench::start_with(WatchOptions { page_bytes, ..options() }).await;
    for number in 0..MAPS {
        bench.put(large(number)).await;
    }
    bench.quiet().await;
    bench.requests();
    let config_maps = of("v1 ConfigMap");
    let targets: Vec<_> = (0..MAPS).map(|number| labelled(&config_maps, &format!("team{number}"), "one")).collect();
    bench.watch.set_needs(&Bench::key("a"), &targets).unwrap();
    let found = |target| match bench.watch.lookup().look_up(target) {
        Sighting::Objects(found) => found.len(),
        other => panic!("{other:?}"),
    };
    bench.until("found", |_| targets.iter().all(|target| found(target) == 1)).await;
    let requests = bench.requests();
    let lists = requests.iter().filter(|entry| entry.attempt.verb == Verb::List).count();
    assert!((4..40).contains(&lists), "each page has at most {page_bytes} bytes: {lists} lists");
    bench.watch.with_state(|state| {
        let (_, slot) = state.slots_of(&config_maps).find(|(spec, _)| spec.select == Select::Wide).unwrap();
        assert_eq!(slot.labels.of_name.len(), MAPS + 1, "with the namespace's kube-root-ca.crt");
        assert_eq!(slot.labels.names.len(), MAPS, "one list of objects for each label that a selector names");
    });
    // A new selector also finds objects that the watch already knows.
    let later = labelled(&config_maps, "l3-7", "1");
    bench.watch.set_needs(&Bench::key("b"), [&later]).unwrap();
    bench.until("found later", |_| found(&later) == 1).await;
    let listed = bench.requests().iter().filter(|entry| entry.attempt.verb == Verb::List).count();
    assert_eq!(listed, 0, "no list for a new selector");
}

#[tokio::test(start_paused = true)]
async fn an_object_with_too_many_labels_is_reported_and_delays_no_other() {
    let bench = Bench::start().await;
    let config_maps = of("v1 ConfigMap");
    let mut many = config_map("many", "1");
    many["metadata"]["labels"] = (0..1_001).map(|label| (format!("l{label}"), json!("1"))).collect();
    bench.put(many).await;
    let mut plain = config_map("plain", "1");
    plain["metadata"]["labels"] = json!({"l1": "1"});
    bench.put(plain).await;
    let targets: Vec<_> = (0..12).map(|number| labelled(&config_maps, &format!("l{number}"), "1")).collect();
    bench.watch.set_needs(&Bench::key("a"), &targets).unwrap();
    bench.watch.set_needs(&Bench::key("b"), [&named(&config_maps, "t", "many")]).unwrap();
    let names = |target: &_| match bench.watch.lookup().look_up(target) {
        Sighting::Objects(found) => found.iter().map(|map| map["metadata"]["name"].clone()).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    bench.until("found", |_| names(&targets[1]) == [json!("plain")]).await;
    let by_name = named(&config_maps, "t", "many");
    bench.until("found by name", |_| names(&by_name) == [json!("many")]).await;
    assert_eq!(names(&targets[2]), [json!(null); 0]);
    assert!(bench.metrics.text().contains("malformed"), "{}", bench.metrics.text());
}
