//! Tests which policies answer while an active revision cannot be loaded.

use super::*;
use crate::catalogue::{Missed, Without};

fn missed(revision: &str, reach: Reach) -> Missed {
    let without =
        Without { revision: revision.into(), how: "its bytes are gone".to_owned(), counts: false, is_lost: true };
    Missed { without, policy: "lost".to_owned(), kinds: vec![widget()], reach, pinned: false }
}

/// Returns the revisions that the operator leaves out for an object of a namespace before any policy fails.
fn goes_without(catalogue: &Catalogue, namespace: &str, pin: Option<&str>) -> Vec<String> {
    let without = Descent::new(kind(catalogue, namespace, pin)).without;
    without.iter().map(|without| without.revision.to_string()).collect()
}

#[test]
fn what_answers_where_a_revision_is_missed_stands_in_for_it_and_what_is_stronger_does_not() {
    let own = member("widget", World::Policy, "", None);
    let installed = member("widget", World::Policy, "i", None);
    let local = member("widget", World::Policy, "l", None);
    let offers = [
        offer(&own, Reach::Process, ""),
        offer(&installed, namespaces(&["b"]), "1"),
        offer(&local, Reach::Own("c".to_owned()), "2"),
    ];
    let with = |missed: &[Missed]| {
        let catalogue = Catalogue::default();
        catalogue.install(arrange(&offers, &[], missed, &[]));
        catalogue
    };
    let everywhere = with(&[missed("gone", Reach::Cluster)]);
    assert_eq!(goes_without(&everywhere, "a", None), ["gone"]);
    assert!(goes_without(&everywhere, "b", None).is_empty(), "a stronger policy answers in namespace b");
    assert!(goes_without(&everywhere, "c", None).is_empty(), "a stronger policy answers in namespace c");
    let scoped = with(&[missed("gone", namespaces(&["b", "c", "d"]))]);
    let told = ["a", "b", "c", "d"].map(|namespace| goes_without(&scoped, namespace, None).len());
    assert_eq!(told, [0, 1, 0, 1]);
    let pinned = with(&[Missed { pinned: true, ..missed("gone", Reach::Cluster) }]);
    assert!(goes_without(&pinned, "a", None).is_empty(), "only objects with a pin miss the revision");
    assert!(goes_without(&everywhere, "a", Some("widget")).is_empty(), "the object pins the policy that answers");
    let settings = Missed { policy: "widget".to_owned(), kinds: Vec::new(), ..missed("gone", Reach::Cluster) };
    assert_eq!(goes_without(&with(&[settings]), "c", None), ["gone"], "the policy answers without its settings");
    let mut descent = Descent::new(kind(&scoped, "b", None));
    assert!(!descent.has_begun());
    assert!(descent.failed(installed.policy.id(), "trap"), "a policy that replaces a missed revision can fail too");
    assert_eq!(names(&descent.kind), [named(&own)]);
    assert_eq!(descent.without.iter().map(|without| &*without.revision).collect::<Vec<_>>(), ["gone", "i"]);
    // If no revision is missed, the same policies answer, but they replace no revision.
    let before = everywhere.load().unwrap();
    everywhere.install(arrange(&offers, &[], &[], &[]));
    let now = everywhere.load().unwrap();
    let is_as_before = |namespace| now.of(&widget()).unwrap().are_in(namespace, before.of(&widget()).unwrap());
    assert_eq!(["a", "b"].map(is_as_before), [false, true]);
}
