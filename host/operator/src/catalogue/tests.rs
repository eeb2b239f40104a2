//! Tests which policies answer in which place. The policies have names but no behaviour.

mod ledger;
mod missed;
mod mute;
mod revision_set;
mod settings;
mod staged;

use std::{collections::BTreeSet, sync::Arc};

use jiff::Timestamp;
use kaos_policy::{
    code::World,
    contract::ResourceType,
    cut::STATUS,
    digest::Digest,
    limits::Limits,
    manifest::{OnRefusal, PolicyFile},
    policy::{Policy, PolicyId},
    settings::{Layer, Origin},
};
use serde_json::json;

use self::mute::Mute;
use super::{Age, Answer, Arranged, Catalogue, Descent, Given, Kind, Member, Offer, Reach, Snapshot, Tuning, arrange};

fn widget() -> ResourceType {
    ResourceType::new("test.io/v1", "Widget")
}

fn member(name: &'static str, world: World, revision: &str, before: Option<&Arc<Member>>) -> Arc<Member> {
    let digest = Digest::of(format!("{name}{revision}").as_bytes());
    let code = Arc::new(Mute(name, world));
    let policy = Policy::admit(code, digest, &PolicyFile::default(), Limits::default()).unwrap();
    let installed = !revision.is_empty();
    Arc::new(Member {
        policy: Arc::new(policy),
        settings: Vec::new(),
        revision: installed.then(|| revision.into()),
        on_refusal: OnRefusal::default(),
        is_local: false,
        since: installed.then(|| at(revision.len())),
        predecessor: before.map(Arc::clone),
    })
}

fn at(seconds: usize) -> Timestamp {
    Timestamp::from_second(i64::try_from(seconds).unwrap()).unwrap()
}

fn age(name: &str) -> Age {
    Age { name: name.to_owned(), ..Age::default() }
}

fn offer(member: &Arc<Member>, reach: Reach, aged: &str) -> Offer {
    Offer { of: widget(), member: Arc::clone(member), reach, pinned: false, age: age(aged) }
}

fn namespaces(names: &[&str]) -> Reach {
    Reach::Namespaces(names.iter().map(|name| (*name).to_owned()).collect())
}

fn answer(catalogue: &Catalogue, namespace: &str, pin: Option<&str>) -> Answer {
    catalogue.load().unwrap().answer(&widget(), namespace, "w", pin)
}

fn kind(catalogue: &Catalogue, namespace: &str, pin: Option<&str>) -> Arc<Kind> {
    match answer(catalogue, namespace, pin) {
        Answer::Kind(kind) => kind,
        other => panic!("{other:?}"),
    }
}

/// Returns the revisions that answer for an object in `namespace` with this `pin`, the lowest layer first. A policy
/// that the process loaded at startup appears with its name.
fn who(catalogue: &Catalogue, namespace: &str, pin: Option<&str>) -> Vec<String> {
    names(&kind(catalogue, namespace, pin))
}

fn names(kind: &Kind) -> Vec<String> {
    let name = |policy: &Arc<Policy>| format!("{}@{}", policy.id().name, &policy.id().digest.hex()[..4]);
    kind.policies().map(name).collect()
}

fn named(member: &Arc<Member>) -> String {
    format!("{}@{}", member.policy.id().name, &member.policy.id().digest.hex()[..4])
}

fn catalogue(offers: &[Offer]) -> (Catalogue, Arranged) {
    let catalogue = Catalogue::default();
    catalogue.install(arrange(offers, &[], &[], &[]));
    (catalogue, arrange(offers, &[], &[], &[]))
}

#[test]
fn a_narrower_scope_wins_over_a_wider_one() {
    let own = member("widget", World::Policy, "", None);
    let cluster = member("widget", World::Policy, "c", None);
    let scoped = member("widget", World::Policy, "s", None);
    let local = member("widget", World::Policy, "l", None);
    let (catalogue, arranged) = catalogue(&[
        offer(&own, Reach::Process, ""),
        offer(&cluster, Reach::Cluster, "3"),
        offer(&scoped, namespaces(&["a", "b"]), "2"),
        offer(&local, Reach::Own("a".to_owned()), "1"),
    ]);
    assert_eq!(who(&catalogue, "a", None), [named(&local)]);
    assert_eq!(who(&catalogue, "b", None), [named(&scoped)]);
    assert_eq!(who(&catalogue, "c", None), [named(&cluster)]);
    assert!(arranged.conflicts.is_empty());
}

#[test]
fn of_two_for_one_place_the_older_stays() {
    let older = member("widget", World::Policy, "old", None);
    let newer = member("widget", World::Policy, "new", None);
    let (catalogue, arranged) =
        catalogue(&[offer(&newer, namespaces(&["a", "b"]), "2"), offer(&older, namespaces(&["b", "c"]), "1")]);
    assert_eq!(who(&catalogue, "b", None), [named(&older)]);
    assert!(matches!(answer(&catalogue, "a", None), Answer::Nothing), "the loser serves for no kind");
    assert_eq!(arranged.conflicts.keys().map(|key| &**key).collect::<Vec<_>>(), ["new"]);
    assert!(arranged.conflicts["new"].message.contains("old already claims"), "{:?}", arranged.conflicts);
}

#[test]
fn a_policy_with_a_conflict_for_one_kind_blocks_no_policy_of_another_kind() {
    let [first, both, last] = ["1", "2", "3"].map(|revision| member("widget", World::Policy, revision, None));
    let gadget = ResourceType::new("example.com/v1", "Gadget");
    let of_gadgets = |member, aged| Offer { of: gadget.clone(), ..offer(member, Reach::Cluster, aged) };
    let (catalogue, arranged) = catalogue(&[
        offer(&first, Reach::Cluster, "1"),
        of_gadgets(&both, "2"),
        offer(&both, Reach::Cluster, "2"),
        of_gadgets(&last, "3"),
    ]);
    assert_eq!(arranged.conflicts.keys().map(|key| &**key).collect::<Vec<_>>(), ["2"]);
    let snapshot = catalogue.load().unwrap();
    let answers = snapshot.of(&gadget).unwrap();
    assert_eq!(answers.revisions().map(|revision| &**revision).collect::<Vec<_>>(), ["3"]);
}

#[test]
fn overlays_lie_over_whatever_answers() {
    let own = member("widget", World::Policy, "", None);
    let local = member("other", World::Policy, "l", None);
    let over = member("over", World::Overlay, "o", None);
    let higher = member("higher", World::Overlay, "h", None);
    let (catalogue, _) = catalogue(&[
        offer(&own, Reach::Process, ""),
        offer(&higher, Reach::Cluster, "2"),
        offer(&over, Reach::Cluster, "1"),
        offer(&local, Reach::Own("a".to_owned()), "3"),
    ]);
    assert_eq!(who(&catalogue, "b", None), [named(&own), named(&over), named(&higher)]);
    assert_eq!(who(&catalogue, "a", None), [named(&local), named(&over), named(&higher)]);
}

#[test]
fn an_object_may_pin_only_policies_whose_scope_contains_it() {
    let own = member("widget", World::Policy, "", None);
    let before = member("widget", World::Policy, "before", Some(&own));
    let cluster = member("widget", World::Policy, "c", Some(&before));
    let canary = member("canary", World::Policy, "canary", None);
    let mut named_only = offer(&canary, namespaces(&["a"]), "2");
    named_only.pinned = true;
    let (catalogue, _) =
        catalogue(&[offer(&own, Reach::Process, ""), offer(&cluster, Reach::Cluster, "1"), named_only]);
    assert_eq!(who(&catalogue, "a", None), [named(&cluster)], "only objects with a pin get this policy");
    assert_eq!(who(&catalogue, "a", Some("canary")), [named(&canary)]);
    assert_eq!(who(&catalogue, "a", Some("widget")), [named(&cluster)]);
    let digest = before.policy.id().digest.to_string();
    assert_eq!(who(&catalogue, "b", Some(&digest)), [named(&before)]);
    assert_eq!(who(&catalogue, "b", Some(&digest[7..21])), [named(&before)]);
    let Answer::NoSuchPolicy(usual, choice) = answer(&catalogue, "b", Some("canary")) else {
        panic!("the policy does not apply in namespace b")
    };
    assert_eq!((names(&usual), choice.len()), (vec![named(&cluster)], 3));
}

#[test]
fn policies_that_may_answer_are_the_serving_the_pinnable_and_the_previous_ones() {
    let own = member("widget", World::Policy, "", None);
    let oldest = member("widget", World::Policy, "1", None);
    let older = member("widget", World::Policy, "12", Some(&oldest));
    let local = member("widget", World::Policy, "123", Some(&older));
    let before = member("over", World::Overlay, "o", None);
    let over = member("over", World::Overlay, "oo", Some(&before));
    let mut canary = offer(&member("canary", World::Policy, "canary", None), namespaces(&["a"]), "2");
    canary.pinned = true;
    let able = |catalogue: &Catalogue| catalogue.load().unwrap().able();
    let ids = |members: &[&Arc<Member>]| -> BTreeSet<PolicyId> {
        members.iter().map(|member| member.policy.id().clone()).collect()
    };
    let all = ids(&[&own, &oldest, &older, &local, &before, &over, &canary.member]);
    let (catalogue, _) = catalogue(&[
        offer(&own, Reach::Process, ""),
        offer(&over, Reach::Cluster, "1"),
        offer(&local, Reach::Own("a".to_owned()), "3"),
        canary,
    ]);
    assert_eq!(able(&catalogue), all);
    catalogue.install(arrange(&[offer(&own, Reach::Process, "")], &[], &[], &[]));
    assert_eq!(able(&catalogue), ids(&[&own]));
}

#[test]
fn a_swap_does_not_disturb_other_policies() {
    let own = member("widget", World::Policy, "", None);
    let (catalogue, _) = catalogue(&[offer(&own, Reach::Process, "")]);
    let (first, before) = (catalogue.load().unwrap(), kind(&catalogue, "b", None));
    let scoped = member("widget", World::Policy, "s", Some(&own));
    let offers = [offer(&own, Reach::Process, ""), offer(&scoped, namespaces(&["a"]), "1")];
    catalogue.install(arrange(&offers, &[], &[], &[]));
    assert!(Arc::ptr_eq(&before, &kind(&catalogue, "b", None)));
    let (second, of) = (catalogue.load().unwrap(), widget());
    assert!(second.of(&of).unwrap().are_in("b", first.of(&of).unwrap()));
    assert!(!second.of(&of).unwrap().are_in("a", first.of(&of).unwrap()));
    catalogue.install(arrange(&offers, &[], &[], &[]));
    assert!(catalogue.load().unwrap().of(&of).unwrap().are_in("a", second.of(&of).unwrap()));
}

fn snapshot(offers: &[Offer], before: &Catalogue) -> Arc<Snapshot> {
    before.proposed(arrange(offers, &[], &[], &[]))
}

#[test]
fn a_change_replaces_only_the_policies_of_its_own_places() {
    let cluster = |revision| offer(&member("widget", World::Policy, revision, None), Reach::Cluster, "1");
    let local = |revision| offer(&member("widget", World::Policy, revision, None), Reach::Own("a".to_owned()), "2");
    let (catalogue, _) = catalogue(&[cluster("c1"), local("l1")]);
    let before = catalogue.load().unwrap();
    let replaced = |offers: &[Offer]| Snapshot::replaced(&before, &snapshot(offers, &catalogue));
    assert_eq!(replaced(&[cluster("c1"), local("l1")]), []);
    let next = replaced(&[cluster("c2"), local("l1")]);
    assert!(!next.is_empty() && !replaced(&[cluster("c1"), local("l2")]).is_empty());

    catalogue.install(arrange(&[cluster("c1"), local("l2")], &[], &[], &[]));
    let before = catalogue.load().unwrap();
    let later = Snapshot::replaced(&before, &snapshot(&[cluster("c2"), local("l2")], &catalogue));
    assert_eq!(later, next, "a swap of the tenant does not change what the candidate replaces");
    catalogue.install(arrange(&[cluster("c3"), local("l2")], &[], &[], &[]));
    let before = catalogue.load().unwrap();
    let last = Snapshot::replaced(&before, &snapshot(&[cluster("c2"), local("l2")], &catalogue));
    assert_ne!(last, next, "another policy would be replaced");
}

fn tuned(revision: &str, since: usize, before: Option<&Arc<Tuning>>) -> Arc<Tuning> {
    Arc::new(Tuning {
        layer: Layer::tree(Origin::ClusterPolicy(revision.to_owned()), "widget", json!({"size": since})),
        revision: revision.into(),
        on_refusal: OnRefusal::default(),
        since: Some(at(since)),
        predecessor: before.map(Arc::clone),
    })
}

#[test]
fn an_object_falls_back_to_the_policy_before_the_newest_failure() {
    let own = member("widget", World::Policy, "", None);
    let installed = member("widget", World::Policy, "ten chars!", Some(&own));
    let older = tuned("settings-1", 5, None);
    let newer = tuned("settings-2", 20, Some(&older));
    let given = Given { tuning: newer, reach: Reach::Cluster, age: age("2") };
    let offers = [offer(&own, Reach::Process, ""), offer(&installed, Reach::Cluster, "1")];
    let catalogue = Catalogue::default();
    catalogue.install(arrange(&offers, &[given], &[], &[]));
    let failed = |kind: &Kind| kind.without(kind.stack().base().id(), &[]);
    let first = failed(&kind(&catalogue, "a", None)).unwrap();
    assert_eq!((&*first.blamed, names(&first.kind)), ("settings-2", vec![named(&installed)]));
    let second = failed(&first.kind).unwrap();
    assert_eq!((&*second.blamed, names(&second.kind)), ("ten chars!", vec![named(&own)]));
    let third = failed(&second.kind).unwrap();
    assert_eq!((&*third.blamed, third.kind.layers().len()), ("settings-1", 0));
    assert!(failed(&third.kind).is_none(), "only policies from the start of the process are left");

    let mut descent = Descent::new(kind(&catalogue, "a", None));
    let mut blamed = |failed: &PolicyId| {
        assert!(descent.failed(failed, "trap"));
        let blamed: Vec<&str> = descent.without.iter().map(|without| &*without.revision).collect();
        (blamed.join(" and "), names(&descent.kind), descent.kind.layers().len())
    };
    let (one, other) = (installed.policy.id(), own.policy.id());
    assert_eq!(blamed(one), ("settings-2".to_owned(), vec![named(&installed)], 1));
    // The policy also fails without the settings, so the settings are not the cause.
    assert_eq!(blamed(one), ("ten chars!".to_owned(), vec![named(&own)], 1));
    // The predecessor fails too, so the operator goes back to the earlier settings.
    assert_eq!(blamed(other), ("ten chars! and settings-2".to_owned(), vec![named(&own)], 1));
    assert_eq!(blamed(other), ("ten chars! and settings-2 and settings-1".to_owned(), vec![named(&own)], 0));
    assert!(!descent.failed(other, "trap"), "only policies from the start of the process are left");
}

#[test]
fn of_a_long_story_of_a_failure_as_much_is_kept_as_a_status_has_room_for() {
    let own = member("widget", World::Policy, "", None);
    let installed = member("widget", World::Policy, "1", Some(&own));
    let (catalogue, _) = catalogue(&[offer(&own, Reach::Process, ""), offer(&installed, Reach::Cluster, "1")]);
    let mut descent = Descent::new(kind(&catalogue, "a", None));
    assert!(descent.failed(installed.policy.id(), &"and then ".repeat(1 << 20)));
    assert!(descent.without[0].how.len() <= STATUS);
}
