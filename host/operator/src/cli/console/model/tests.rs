//! Tests a model on an embedded cluster, with a clock that stands still while there is work to do.

pub(in crate::cli::console) mod sample;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use kaos_cluster::{
    Cluster as TestCluster,
    faults::{Attempt, Failure, NoFaults, Outcome, Verb, Verdict},
};
use kaos_policy::contract::ResourceType;
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use self::sample::{EMPTY, SampleKind, USED, USER, add, cluster, model, until};
use super::{
    start::REREAD,
    watched_type::{Role, WatchedType},
    *,
};
use crate::{input::Identity, watch::Served};

/// The number of objects in the tests of a cluster at rest, unless an environment variable sets another number.
const OBJECTS: usize = 100;

fn shown(model: &Model) -> Vec<String> {
    model.with_claimed(|all| all.map(|(identity, _)| identity.to_string()).collect())
}

#[tokio::test(start_paused = true)]
async fn a_cluster_at_rest_gets_no_requests_and_no_object_is_evaluated_again() {
    let objects = std::env::var("KAOS_CONSOLE_OBJECTS").map_or(OBJECTS, |number| number.parse().expect("a number"));
    let cluster = cluster(&["team"]).await;
    add(&cluster, &USED, ("team", "llm"), true);
    for number in 0..objects {
        add(&cluster, &USER, ("team", &format!("agent-{number}")), true);
    }
    let model = model(&cluster, &[]).await;
    let evaluations = model.evaluations.load(Ordering::Relaxed);
    let at_start = cluster.journal().count(|_| true);
    assert!(evaluations >= objects as u64, "{evaluations}");
    cluster.journal().clear();
    tokio::time::sleep(REREAD / 2).await;
    let at_rest = cluster.journal().count(|_| true);
    assert_eq!(at_rest, 0, "{:?}", cluster.journal().entries());
    // Meanwhile, the console reads the policies several times, and continues the watches.
    tokio::time::sleep(REREAD * 6).await;
    let lists =
        cluster.journal().count(|entry| entry.attempt.verb == Verb::List && entry.attempt.resource == USER.plural);
    let other = cluster.journal().count(|entry| entry.attempt.verb != Verb::Watch);
    let again = model.evaluations.load(Ordering::Relaxed) - evaluations;
    println!(
        "{objects} objects: {at_start} requests and {evaluations} evaluations at the start; at rest {at_rest} requests, \
         and in half an hour {other} requests for the policies and {again} evaluations"
    );
    assert_eq!((lists, again), (0, 0));
    assert!(other <= 6 * 40, "{other} requests for the policies, whatever the number of objects");
}

#[tokio::test(start_paused = true)]
async fn a_changed_object_is_evaluated_once_and_the_others_are_not() {
    let cluster = cluster(&["team"]).await;
    for name in ["a", "b", "c"] {
        add(&cluster, &USER, ("team", name), true);
    }
    let model = model(&cluster, &[]).await;
    let before = model.evaluations.load(Ordering::Relaxed);
    add(&cluster, &USER, ("team", "a"), false);
    until(|| shown(&model).len() == 3 && model.counts()[0].1.open == 1).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(model.evaluations.load(Ordering::Relaxed), before + 1, "the object was made again, with another UID");
}

/// Limits the user's rights. `allow` decides which requests for objects of the claimed kinds the server allows. All
/// other requests are allowed.
fn restrict(cluster: &TestCluster, allow: impl Fn(&Attempt) -> bool + Send + Sync + 'static) {
    let is_kind = |attempt: &Attempt| attempt.group == "kaos.tools" || attempt.group == "a.example";
    cluster.authorise(move |attempt| {
        !is_kind(attempt) || attempt.resource == "policyrevisions" || attempt.resource.is_empty() || allow(attempt)
    });
}

#[tokio::test(start_paused = true)]
async fn each_kind_has_its_own_namespaces() {
    let cluster = cluster(&["both", "models", "none"]).await;
    for namespace in ["both", "models", "none"] {
        add(&cluster, &USER, (namespace, "a"), true);
        add(&cluster, &USED, (namespace, "m"), true);
    }
    // The user sees the kind `USED` in two namespaces, and the kind `USER` in only one.
    restrict(&cluster, |attempt| {
        let is_in = |of: &SampleKind, namespaces: &[&str]| {
            attempt.resource == of.plural && namespaces.contains(&&*attempt.namespace)
        };
        is_in(&USED, &["both", "models"]) || is_in(&USER, &["both"])
    });
    let model = model(&cluster, &[]).await;
    assert_eq!(shown(&model), [USER.at("both/a"), USED.at("both/m"), USED.at("models/m")]);
    let limits = model.limits();
    assert_eq!(limits.places.hidden.iter().filter(|hidden| *hidden == "none").count(), 1, "{limits:?}");
    let missing: Vec<String> = limits.missing.iter().map(ToString::to_string).collect();
    let is_told = |start: &str| missing.iter().any(|right| right.contains(start));
    let place = |of: &SampleKind, place: &str| format!("{}.kaos.tools in {place}", of.plural);
    let list = |of: &SampleKind, at: &str| format!("list {}", place(of, at));
    // The user lacks no right of any verb where the user may list the objects.
    assert!(is_told(&list(&USER, "namespace models")) && !is_told(&place(&USER, "namespace both")));
    assert!(is_told(&list(&EMPTY, "all namespaces")), "{missing:?}");
}

#[tokio::test(start_paused = true)]
async fn a_kind_of_the_whole_cluster_stays_whole_beside_kinds_with_fewer_rights() {
    let cluster = cluster(&["one", "two"]).await;
    for namespace in ["one", "two"] {
        add(&cluster, &USER, (namespace, "a"), true);
        add(&cluster, &USED, (namespace, "m"), true);
    }
    restrict(&cluster, |attempt| {
        attempt.resource == USED.plural || (attempt.resource == USER.plural && attempt.namespace == "two")
    });
    let model = model(&cluster, &[]).await;
    assert_eq!(shown(&model), [USER.at("two/a"), USED.at("one/m"), USED.at("two/m")]);
    assert!(model.limits().places.hidden.is_empty(), "the user sees the objects of one kind in every namespace");
    let watches = cluster.journal().count(|entry| {
        entry.attempt.verb == Verb::Watch && entry.attempt.resource == USED.plural && entry.attempt.namespace.is_empty()
    });
    assert_eq!(watches, 1);
}

#[tokio::test(start_paused = true)]
async fn the_user_can_name_the_namespaces() {
    let cluster = cluster(&["one", "two"]).await;
    for namespace in ["one", "two"] {
        add(&cluster, &USER, (namespace, "a"), true);
    }
    let model = model(&cluster, &["two"]).await;
    assert_eq!(shown(&model), [USER.at("two/a")]);
}

#[tokio::test(start_paused = true)]
async fn the_note_about_a_lost_watch_goes_as_soon_as_the_watch_works_again() {
    let cluster = cluster(&["team"]).await;
    add(&cluster, &USER, ("team", "a"), true);
    let model = model(&cluster, &[]).await;
    assert!(model.limits().broken.is_empty());
    cluster.set_faults(|attempt: &Attempt, _: &mut fastrand::Rng| {
        let is_lost = attempt.verb == Verb::Watch && attempt.resource == USER.plural;
        if is_lost { Verdict::from(Outcome::FailBefore(Failure::Server(503))) } else { Verdict::default() }
    });
    cluster.cut_watches();
    // The test has cut all watches, but only the watch of this kind cannot continue.
    let told = format!("{} objects may be out of date: ", USER.kind);
    let is_broken = |broken: &[String]| matches!(broken, [one] if one.starts_with(&told));
    until(|| is_broken(&model.limits().broken)).await;
    cluster.journal().clear();
    cluster.set_faults(NoFaults);
    until(|| model.limits().broken.is_empty()).await;
    let is_list = |attempt: &Attempt| attempt.verb == Verb::List && attempt.resource == USER.plural;
    let lists = cluster.journal().count(|entry| is_list(&entry.attempt));
    assert_eq!(lists, 0, "the watch continued where it ended");
}

#[tokio::test(start_paused = true)]
async fn watches_that_fail_together_do_not_come_back_at_the_same_moment() {
    let cluster = cluster(&["team"]).await;
    let _model = model(&cluster, &[]).await;
    cluster.set_faults(|attempt: &Attempt, _: &mut fastrand::Rng| {
        let is_lost = attempt.verb == Verb::Watch;
        if is_lost { Verdict::from(Outcome::FailBefore(Failure::Server(503))) } else { Verdict::default() }
    });
    cluster.cut_watches();
    cluster.journal().clear();
    tokio::time::sleep(REREAD / 2).await;
    let entries = cluster.journal().entries();
    let failed: Vec<_> = entries.iter().filter(|entry| entry.attempt.verb == Verb::Watch).collect();
    let moments: BTreeSet<_> = failed.iter().map(|entry| entry.at).collect();
    assert!(moments.len() * 2 > failed.len(), "{} moments for {} requests", moments.len(), failed.len());
    // If the delay did not grow from 2 s, a watch would send 75 requests.
    let watches = failed.iter().map(|entry| &entry.attempt.resource).collect::<BTreeSet<_>>();
    assert!(failed.len() < 12 * watches.len(), "{} requests of {} watches", failed.len(), watches.len());
}

fn kite() -> (ResourceType, Served) {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("sky.example", "v1", "Kite"));
    (ResourceType::new("sky.example/v1", "Kite"), Served { resource, namespaced: true, nicknames: Vec::new() })
}

#[tokio::test(start_paused = true)]
async fn a_child_type_that_a_policy_claims_later_is_read_again_as_a_whole() {
    let cluster = cluster(&["team"]).await;
    let model = model(&cluster, &[]).await;
    let (of, served) = kite();
    let object = || {
        let spec = json!({"template": {"spec": {"containers": []}}});
        let metadata = json!({"name": "k", "namespace": "team", "uid": "k", "resourceVersion": "1"});
        json!({"apiVersion": "sky.example/v1", "kind": "Kite", "metadata": metadata, "spec": spec})
    };
    let begin = |role: Role| {
        let watched =
            WatchedType { of: of.clone(), served: served.clone(), place: None, role, stop: CancellationToken::new() };
        model.begin_watches(&watched, vec![None]).remove(0)
    };
    let wanted = |role: Role| [(of.clone(), role)].into();
    let child = begin(Role::Child);
    let identity = model.put(&child, object()).expect("the watch runs");
    let kept = |identity: &Identity| model.object(identity).map(|kept| kept.object["spec"]["template"].clone());
    assert_eq!(kept(&identity), Some(json!({})), "children keep no pod template");
    assert!(!model.end_watches(wanted(Role::Child)).iter().any(|(new, _)| *new == of), "the watch goes on");
    assert!(model.end_watches(wanted(Role::Claimed)).iter().any(|(new, _)| *new == of), "the watch starts again");
    assert_eq!(kept(&identity), None);
    assert_eq!(model.put(&child, object()), None, "an event of the old watch has no effect");
    let claimed = begin(Role::Claimed);
    assert!(model.is_loading_kind(&identity));
    model.put(&claimed, object());
    model.listed(&claimed, &[identity.clone()].into());
    assert!(!model.is_loading_kind(&identity));
    assert_eq!(kept(&identity), Some(json!({"spec": {"containers": []}})));
    assert!(model.end_watches(BTreeMap::new()).is_empty());
    assert!(claimed.stop.is_cancelled() && kept(&identity).is_none(), "nobody claims the kind any more");
}

#[tokio::test(start_paused = true)]
async fn work_keeps_its_slot_until_it_ends_also_if_nobody_waits_for_it() {
    let cluster = cluster(&[]).await;
    let model = model(&cluster, &[]).await;
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let (started, has_started) = tokio::sync::oneshot::channel::<()>();
    let before = model.free_slots();
    let asked = Arc::clone(&model);
    let work = tokio::spawn(async move {
        let busy = async move |_| {
            let _seen = started.send(());
            let _going = wait.recv();
            Ok(())
        };
        asked.blocking(busy).await
    });
    has_started.await.expect("the work starts");
    work.abort();
    assert!(work.await.is_err());
    assert_eq!(model.free_slots(), before - 1, "the browser went, but the work goes on");
    go.send(()).expect("the work waits");
    until(|| model.free_slots() == before).await;
}
