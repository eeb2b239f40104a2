//! Tests several packages of settings together.

use super::*;

fn given(revision: &str, aged: &str, reach: Reach, tree: serde_json::Value) -> Given {
    let layer = Layer::tree(Origin::ClusterPolicy(revision.to_owned()), "widget", tree);
    let (revision, on_refusal) = (revision.into(), OnRefusal::default());
    let tuning = Tuning { layer, revision, on_refusal, since: None, predecessor: None };
    Given { tuning: Arc::new(tuning), reach, age: age(aged) }
}

#[test]
fn of_two_packages_that_set_the_same_value_in_the_same_place_the_older_one_applies() {
    let own = member("widget", World::Policy, "", None);
    let conflicts = |given: &[Given]| {
        let arranged = arrange(&[offer(&own, Reach::Process, "")], given, &[], &[]);
        let layers = arranged.answers[&widget()].usual("a").unwrap().layers().to_vec();
        (arranged.conflicts, layers)
    };
    let older = given("older", "1", Reach::Cluster, json!({"probe": {"period": 1}, "size": 2}));
    let newer = given("newer", "2", Reach::Cluster, json!({"probe": {"period": 1}}));
    for order in [[newer.clone(), older.clone()], [older.clone(), newer]] {
        let (told, layers) = conflicts(&order);
        assert_eq!(told.keys().map(|key| &**key).collect::<Vec<_>>(), ["newer"], "in any order");
        assert!(told["newer"].message.contains("older already sets `probe.period` of widget"), "{told:?}");
        assert_eq!(layers, std::slice::from_ref(&older.tuning.layer));
    }
    for beside in [
        given("beside", "2", Reach::Cluster, json!({"probe": {"path": "/"}, "color": "red"})),
        given("narrower", "2", namespaces(&["a"]), json!({"size": 3})),
    ] {
        assert!(conflicts(&[older.clone(), beside]).0.is_empty());
    }
    let whole = given("whole", "2", Reach::Cluster, json!({"probe": null}));
    assert_eq!(conflicts(&[older, whole]).0.len(), 1, "a value conflicts with every setting below its path");
}
