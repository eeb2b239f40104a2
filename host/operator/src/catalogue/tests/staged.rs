//! Tests which policies answer while a rollout has moved only some objects.

use kaos_policy::rollout::RolloutUnit;
use serde_json::Value;

use super::{
    revision_set::{entry, lost, revisions, sized},
    *,
};
use crate::catalogue::{MovedObjects, installed::RevisionSet};

fn moved(up_to: Option<u64>) -> MovedObjects {
    MovedObjects { salt: "s".to_owned(), by: RolloutUnit::Object, up_to }
}

/// Returns the revision `new` and its predecessor `old`. The rollout of `new` has moved the objects up to the hash
/// `up_to`.
fn set(scope: Reach, up_to: Option<u64>) -> RevisionSet {
    let mut new = entry(sized("new", &json!(2)), scope, "1", Some("old"));
    new.stage = Some(moved(up_to));
    revisions(vec![("old", entry(sized("old", &json!(1)), Reach::Cluster, "1", None)), ("new", new)])
}

fn install(catalogue: &Catalogue, revisions: &RevisionSet, serving: &[&str]) -> Arc<Snapshot> {
    let serving = serving.iter().map(|revision| (*revision).to_owned()).collect();
    catalogue.install(revisions.arrange(&serving, &[]).unwrap());
    catalogue.load().unwrap()
}

fn revision(snapshot: &Snapshot, namespace: &str, name: &str) -> String {
    let kind = snapshot.usual_for(&widget(), namespace, name).unwrap();
    kind.revisions().next().map_or_else(|| "own".to_owned(), ToString::to_string)
}

fn object(name: &str, pin: &str) -> Value {
    json!({"apiVersion": "test.io/v1", "kind": "Widget",
        "metadata": {"namespace": "a", "name": name, "annotations": {"kaos.tools/policy": pin}}})
}

#[test]
fn only_moved_objects_get_the_new_policies_and_the_others_get_no_pass() {
    let catalogue = Catalogue::default();
    let before = install(&catalogue, &set(Reach::Cluster, None), &["old"]);
    let begun = install(&catalogue, &set(Reach::Cluster, None), &["new"]);
    let names: Vec<String> = (0..50).map(|number| format!("w{number}")).collect();
    assert!(names.iter().all(|name| revision(&begun, "a", name) == "old"));
    assert!(names.iter().all(|name| begun.is_as_in(&before, &widget(), "a", name)));
    let half = install(&catalogue, &set(Reach::Cluster, Some(u64::MAX / 2)), &["new"]);
    for name in &names {
        let is_moved = moved(Some(u64::MAX / 2)).has(&widget(), "a", name);
        assert_eq!(revision(&half, "a", name), if is_moved { "new" } else { "old" });
        assert_eq!(half.is_as_in(&begun, &widget(), "a", name), !is_moved, "only a moved object gets a pass");
        assert_eq!(half.is_moved(&widget(), "a", name), is_moved);
    }
    let back = install(&catalogue, &set(Reach::Cluster, None), &["old"]);
    assert!(names.iter().all(|name| back.is_as_in(&before, &widget(), "a", name)));
    assert!(half.able().len() > 1 && half.active().len() == 2, "the watch covers both revisions");
}

#[test]
fn a_rollout_to_another_scope_moves_object_by_object_too() {
    let catalogue = Catalogue::default();
    let begun = install(&catalogue, &set(namespaces(&["a"]), None), &["new"]);
    assert_eq!([revision(&begun, "a", "w"), revision(&begun, "b", "w")], ["old", "old"]);
    let all = install(&catalogue, &set(namespaces(&["a"]), Some(u64::MAX)), &["new"]);
    assert_eq!([revision(&all, "a", "w"), revision(&all, "b", "w")], ["new", "own"]);
}

#[test]
fn without_its_predecessor_a_rollout_leaves_the_other_objects_alone() {
    let mut revisions = set(Reach::Cluster, None);
    revisions.entries.remove("old");
    let catalogue = Catalogue::default();
    let snapshot = install(&catalogue, &revisions, &["new"]);
    assert!(matches!(snapshot.answer_for(&object("w", "")), Answer::Nothing));
    assert!(snapshot.is_loading(&object("w", "")));
    revisions.entries.insert("old".to_owned(), entry(lost(widget()), Reach::Cluster, "1", None));
    assert!(install(&catalogue, &revisions, &["new"]).is_loading(&object("w", "")));
}

#[test]
fn without_both_revisions_of_a_rollout_all_objects_wait() {
    let mut revisions = set(Reach::Cluster, Some(u64::MAX / 2));
    let older = entry(sized("older", &json!(0)), Reach::Cluster, "1", None);
    let old = entry(lost(widget()), Reach::Cluster, "1", Some("older"));
    let mut new = entry(lost(widget()), Reach::Cluster, "1", Some("old"));
    new.stage = Some(moved(Some(u64::MAX / 2)));
    for (name, entry) in [("older", older), ("old", old), ("new", new)] {
        revisions.entries.insert(name.to_owned(), entry);
    }
    let snapshot = install(&Catalogue::default(), &revisions, &["new"]);
    for name in (0..50).map(|number| format!("w{number}")) {
        assert!(snapshot.is_loading(&object(&name, "")), "{name}");
        assert!(matches!(snapshot.answer_for(&object(&name, "")), Answer::Nothing), "{name}");
    }
}

#[test]
fn an_object_with_a_pin_waits_only_if_its_own_policy_waits() {
    let mut revisions = set(Reach::Cluster, None);
    let mut chosen = entry(sized("chosen", &json!(3)), Reach::Cluster, "3", None);
    chosen.pinned = true;
    revisions.entries.insert("chosen".to_owned(), chosen);
    revisions.entries.insert("old".to_owned(), entry(lost(widget()), Reach::Cluster, "1", None));
    let snapshot = install(&Catalogue::default(), &revisions, &["new", "chosen"]);
    for revision in ["chosen", "new"] {
        let pinned = object("w", &snapshot_digest(&revisions, revision));
        let Answer::Kind(kind) = snapshot.answer_for(&pinned) else { panic!("{revision}") };
        assert_eq!(kind.revisions().next().map(|revision| &**revision), Some(revision));
        assert!(!snapshot.is_loading(&pinned), "{revision}");
    }
    revisions.entries.remove("chosen");
    let snapshot = install(&Catalogue::default(), &revisions, &["new"]);
    for pin in ["", "widget", "sha256:000000000000"] {
        assert!(snapshot.is_loading(&object("w", pin)), "{pin}: the pin can mean the predecessor");
    }
}

#[test]
fn a_revision_in_conflict_undoes_no_rollout() {
    let mut revisions = set(Reach::Cluster, Some(u64::MAX / 2));
    let mut late = entry(sized("late", &json!(3)), Reach::Cluster, "2", None);
    late.stage = Some(moved(None));
    revisions.entries.insert("late".to_owned(), late);
    let snapshot = install(&Catalogue::default(), &revisions, &["new", "late"]);
    for name in (0..50).map(|number| format!("w{number}")) {
        let is_moved = moved(Some(u64::MAX / 2)).has(&widget(), "a", &name);
        assert_eq!(revision(&snapshot, "a", &name), if is_moved { "new" } else { "old" });
    }
}

#[test]
fn a_rollout_waits_for_another_one_over_the_objects_of_its_predecessor() {
    let mut revisions = set(namespaces(&["a"]), None);
    let mut other = entry(sized("other", &json!(3)), namespaces(&["b"]), "2", None);
    other.stage = Some(moved(None));
    revisions.entries.insert("other".to_owned(), other);
    let beside = |revisions: &RevisionSet| {
        let serving = ["new", "other"].map(str::to_owned).into();
        revisions.rollout_beside("new", &serving)
    };
    assert_eq!(beside(&revisions).as_deref(), Some("other"));
    revisions.entries.get_mut("new").unwrap().predecessor = None;
    assert_eq!(beside(&revisions), None);
}

#[test]
fn an_object_that_pins_the_new_policy_does_not_wait_for_the_rollout() {
    let revisions = set(Reach::Cluster, None);
    let snapshot = install(&Catalogue::default(), &revisions, &["new"]);
    let digest = |name: &str| snapshot_digest(&revisions, name);
    for name in ["new", "old"] {
        let Answer::Kind(kind) = snapshot.answer_for(&object("w", &digest(name))) else { panic!("{name}") };
        assert_eq!(kind.revisions().next().map(|revision| &**revision), Some(name));
    }
    assert!(matches!(snapshot.answer_for(&object("w", "nothing")), Answer::NoSuchPolicy(..)));
}

fn snapshot_digest(revisions: &RevisionSet, name: &str) -> String {
    match &revisions.entries[name].content {
        crate::catalogue::installed::Content::Policy(policy, _) => policy.id().digest.hex(),
        other => panic!("{other:?}"),
    }
}
