//! Tests how a set of revisions treats revisions that cannot be loaded any more.

use std::collections::BTreeMap;

use kaos_crds::PolicySource;
use kaos_policy::rollout::Rollout;
use serde_json::Value;

use super::*;
use crate::catalogue::installed::{AdmittedRevision, Content, RevisionSet};

pub(super) fn revisions(entries: Vec<(&str, AdmittedRevision)>) -> RevisionSet {
    let own = member("widget", World::Policy, "", None);
    let entries: BTreeMap<String, AdmittedRevision> =
        entries.into_iter().map(|(revision, entry)| (revision.to_owned(), entry)).collect();
    RevisionSet { own: vec![offer(&own, Reach::Process, "")], entries }
}

pub(super) fn entry(content: Content, reach: Reach, aged: &str, before: Option<&str>) -> AdmittedRevision {
    AdmittedRevision {
        source: PolicySource { namespace: "n".to_owned(), config_map: aged.to_owned() },
        age: age(aged),
        reach,
        pinned: false,
        content,
        on_refusal: OnRefusal::default(),
        rollout: Rollout::default(),
        stage: None,
        since: None,
        predecessor: before.map(str::to_owned),
    }
}

pub(super) fn sized(revision: &str, size: &Value) -> Content {
    Content::Policy(Arc::clone(&member("widget", World::Policy, revision, None).policy), json!({"size": size}))
}

pub(super) fn lost(of: ResourceType) -> Content {
    Content::Lost {
        policy: "widget".to_owned(),
        kinds: vec![of],
        why: "its bytes are gone".to_owned(),
        bytes_are_gone: true,
        failures: 1,
    }
}

fn arranged(revisions: &RevisionSet, serving: &[&str]) -> (Catalogue, Vec<String>) {
    let serving = serving.iter().map(|revision| (*revision).to_owned()).collect();
    let arranged = revisions.arrange(&serving, &[]).unwrap();
    let conflicts = arranged.conflicts.keys().map(ToString::to_string).collect();
    let catalogue = Catalogue::default();
    catalogue.install(arranged);
    (catalogue, conflicts)
}

/// Returns the revisions that answer in a namespace.
fn revisions_in(catalogue: &Catalogue, namespace: &str) -> Vec<String> {
    kind(catalogue, namespace, None).revisions().map(ToString::to_string).collect()
}

#[test]
fn a_namespaces_own_gives_way_before_what_stands_in_for_others() {
    let revisions = revisions(vec![
        ("before", entry(sized("before", &json!(1)), Reach::Cluster, "1", None)),
        ("gone", entry(lost(widget()), Reach::Cluster, "1", Some("before"))),
        ("local", entry(sized("local", &json!("many")), Reach::Own("a".to_owned()), "2", None)),
    ]);
    let (catalogue, conflicts) = arranged(&revisions, &["gone", "local"]);
    assert_eq!(conflicts, ["local"]);
    assert_eq!(revisions_in(&catalogue, "a"), ["before"]);
    assert_eq!(kind(&catalogue, "a", None).missed().len(), 1);
}

#[test]
fn of_what_stands_in_for_others_only_that_is_left_out_that_does_not_go_with_the_rest() {
    let own = |size: &Value, revision: &str| entry(sized(revision, size), Reach::Own("c".to_owned()), "3", None);
    let revisions = revisions(vec![
        ("bad", entry(sized("bad", &json!("many")), Reach::Cluster, "1", None)),
        ("gone-bad", entry(lost(widget()), Reach::Cluster, "1", Some("bad"))),
        ("good", entry(sized("good", &json!(1)), namespaces(&["a"]), "2", None)),
        ("gone-good", entry(lost(widget()), namespaces(&["a"]), "2", Some("good"))),
        ("local-bad", own(&json!("few"), "local-bad")),
        (
            "local-gone",
            AdmittedRevision {
                predecessor: Some("local-bad".to_owned()),
                content: lost(widget()),
                ..own(&json!(1), "l")
            },
        ),
    ]);
    let (catalogue, conflicts) = arranged(&revisions, &["gone-bad", "gone-good", "local-gone"]);
    assert_eq!(conflicts, [""; 0]);
    assert_eq!(revisions_in(&catalogue, "a"), ["good"]);
    assert_eq!(revisions_in(&catalogue, "b"), [""; 0], "the policy from the start of the process answers");
    assert_eq!(revisions_in(&catalogue, "c"), [""; 0]);
    assert_eq!(kind(&catalogue, "c", None).missed().len(), 2, "the policy replaces both missed revisions");
}

#[test]
fn what_served_before_stands_in_for_the_kinds_that_the_lost_one_had() {
    let gadget = ResourceType::new("example.com/v1", "Gadget");
    let revisions = revisions(vec![
        ("before", entry(sized("before", &json!(1)), Reach::Cluster, "1", None)),
        ("gone", entry(lost(gadget), Reach::Cluster, "1", Some("before"))),
    ]);
    let (catalogue, _) = arranged(&revisions, &["gone"]);
    assert_eq!(revisions_in(&catalogue, "a"), [""; 0], "the policy from the start of the process answers");
}
