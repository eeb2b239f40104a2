//! Tests lookups by labels, and the deletion of an object that many selectors select.

use std::sync::atomic::Ordering;

use kaos_objects::{Followed, ResourceType, Selector};
use serde_json::json;

use super::{
    super::{by_label::ByLabel, charge},
    *,
};
use crate::watch::{cached_object::Extract, needs::named, plan::Select};

fn item(version: u64, labels: &serde_json::Value) -> CachedObject {
    let object =
        json!({"metadata": {"name": "x", "uid": "u", "resourceVersion": version.to_string(), "labels": labels}});
    let extract = Extract { labels: true, ..Extract::default() };
    Arrived::new(object, &ResourceType::new("v1", "ConfigMap"), extract).unwrap().item
}

fn labels(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn objects_are_found_by_all_of_their_labels_and_never_go_back() {
    let mut index = ByLabel::default();
    let found = |index: &ByLabel, pairs: &[(&str, &str)]| {
        index.matching(&labels(pairs)).iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let (one, other): (Arc<str>, Arc<str>) = ("one".into(), "other".into());
    assert!(index.put(&one, &item(3, &json!({"a": "1", "b": "1"}))));
    assert!(index.put(&other, &item(4, &json!({"a": "1"}))));
    assert_eq!(found(&index, &[("a", "1")]), ["one", "other"]);
    assert_eq!(found(&index, &[("a", "1"), ("b", "1")]), ["one"]);
    assert_eq!(found(&index, &[("a", "2")]), [""; 0]);
    assert_eq!(found(&index, &[]), ["one", "other"]);
    assert!(!index.put(&one, &item(2, &json!({"a": "2"}))), "an older version");
    assert!(index.put(&one, &item(5, &json!({"a": "2"}))));
    assert_eq!(found(&index, &[("a", "1")]), ["other"]);
    assert!(!index.gone("one", 4) && index.gone("one", 6));
    assert_eq!(found(&index, &[]), ["other"]);
    assert!(index.gone("other", 9) && index.names.is_empty() && index.of_name.is_empty());
}

fn config_map() -> ResourceType {
    ResourceType::new("v1", "ConfigMap")
}

fn labelled(number: usize) -> Target {
    let labels = labels(&[(&format!("l{number}"), "1")]);
    Target::Labelled(Selector { of: config_map(), namespace: Some("t".to_owned()), labels })
}

#[test]
fn when_an_object_with_many_selectors_goes_it_is_decided_once_of_each_name_whether_it_is_needed() {
    const SELECTORS: usize = 100;
    const NAMES: usize = 40;
    let all: serde_json::Map<String, serde_json::Value> =
        (0..SELECTORS).map(|number| (format!("l{number}"), json!("1"))).collect();
    let spec = Spec::new(&config_map(), Some("t".to_owned()), Select::Wide);
    let (cache, fetched, index, wake_task) = Default::default();
    let mut slot = Slot {
        id: 1,
        of: Arc::new(config_map()),
        extract: Extract::default(),
        dictionary: Arc::default(),
        cache,
        fetched,
        labels: index,
        wake_task,
    };
    for number in 0..NAMES {
        let mut labels = all.clone();
        if number == 0 {
            labels.insert("kept".to_owned(), json!("1"));
        }
        slot.labels.put(&format!("c{number}").into(), &item(1, &json!(labels)));
    }
    let allowance = crate::watch::Allowance::default();
    let mut state = State { allowance, ..State::default() };
    state.slots.insert(spec.clone(), slot);
    let key = |name: &str| ObjectKey::new(ResourceType::new("x.io/v1", "Widget"), "t", name);
    let kept = labels(&[("kept", "1")]);
    let kept = Target::Labelled(Selector { of: config_map(), namespace: Some("t".to_owned()), labels: kept });
    let named = named(&config_map(), Some("t"), "c1");
    charge::set_needs(&mut state, &key("small"), [kept, named].iter().map(Followed::from).collect()).unwrap();
    charge::set_needs(&mut state, &key("greedy"), (0..SELECTORS).map(|number| (&labelled(number)).into()).collect())
        .unwrap();
    let slot = |state: &State| {
        let slot = state.slots.get(&spec).unwrap();
        let wanted = (0..NAMES).filter(|number| slot.fetched.is_to_be_read(&format!("c{number}"))).collect::<Vec<_>>();
        (wanted, slot.labels.decided.load(Ordering::Relaxed))
    };
    assert_eq!(slot(&state), ((0..NAMES).collect(), 0), "something new needs all of them");
    charge::set_needs(&mut state, &key("greedy"), BTreeSet::new()).unwrap();
    assert_eq!(slot(&state), (vec![0, 1], NAMES - 1), "one is needed by its name");
}
