//! Tests missing, revoked and granted rights, in the whole cluster and in listed namespaces.

use std::{collections::BTreeSet, time::Duration};

use kaos_cluster::faults::{Attempt, Failure, NoFaults, Outcome, Verb, Verdict};
use kaos_objects::{
    Target,
    lookup::{Lookup as _, Sighting},
};
use serde_json::json;

use super::support::*;
use crate::watch::{Scope, WatchOptions};

/// Returns whether a lookup of the target is answered with `Forbidden`.
fn is_withheld(bench: &Bench, target: &Target) -> bool {
    matches!(bench.watch.lookup().look_up(target), Sighting::Forbidden(_))
}

/// Returns a bench in which a Widget needs a Gadget and the operator has seen the Gadget.
async fn one_needs_a_gadget() -> (Bench, Target) {
    let bench = Bench::start().await;
    bench.put(object(&widget(), "a", json!({}))).await;
    bench.put(object(&gadget(), "g", json!({}))).await;
    bench.wakes(&["t/a"]).await;
    let target = named(&gadget(), "t", "g");
    bench.watch.set_needs(&Bench::key("a"), [&target]).unwrap();
    (bench, target)
}

#[tokio::test(start_paused = true)]
async fn rights_that_are_taken_away_are_told_and_heal_by_themselves() {
    let (bench, target) = one_needs_a_gadget().await;
    bench.cluster.authorise(|attempt| attempt.resource != "gadgets" || attempt.user != "operator");
    bench.cluster.cut_watches();
    bench.until("refused", |bench| bench.watch.forbidden(&gadget()).is_some()).await;
    assert!(bench.watch.trouble(&gadget()).unwrap().contains("cannot watch resource \"gadgets\""));
    assert!(bench.watch.waiting_for(&widget()).is_empty(), "passes do not wait for a refused type");
    let text = bench.metrics.text();
    assert!(text.contains(r#"watch_errors_total{group="test.io",kind="Gadget",reason="forbidden"}"#), "{text}");
    assert!(text.contains(r#"watch_state{group="test.io",kind="Gadget",state="forbidden"} 1"#), "{text}");
    // For a while, lookups still return the known object.
    assert!(matches!(bench.watch.lookup().look_up(&target), Sighting::Objects(found) if found.len() == 1));
    assert_eq!(bench.woken(), BTreeSet::new());
    bench.until("withheld", |bench| is_withheld(bench, &target)).await;
    assert_eq!(bench.woken(), BTreeSet::from(["t/a".to_owned()]));
    bench.cluster.allow_everything();
    bench.until("given back", |bench| bench.watch.trouble(&gadget()).is_none()).await;
    assert_eq!(bench.woken(), BTreeSet::from(["t/a".to_owned()]));
    assert!(matches!(bench.watch.lookup().look_up(&target), Sighting::Objects(found) if found.len() == 1));
}

#[tokio::test(start_paused = true)]
async fn known_objects_are_refused_only_as_long_as_the_server_refuses_them() {
    let (bench, target) = one_needs_a_gadget().await;
    bench.cluster.authorise(|attempt| attempt.resource != "gadgets" || attempt.user != "operator");
    bench.cluster.cut_watches();
    bench.until("withheld", |bench| is_withheld(bench, &target)).await;
    assert_eq!(bench.woken(), BTreeSet::from(["t/a".to_owned()]));
    bench.cluster.set_faults(|attempt: &Attempt, _: &mut fastrand::Rng| match attempt.resource.as_str() {
        "gadgets" => Verdict::from(Outcome::FailBefore(Failure::Server(503))),
        _ => Verdict::default(),
    });
    bench.until("nobody answers", |bench| bench.watch.forbidden(&gadget()).is_none()).await;
    assert_eq!(bench.woken(), BTreeSet::from(["t/a".to_owned()]));
    assert!(matches!(bench.watch.lookup().look_up(&target), Sighting::Objects(found) if found.len() == 1));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_for_some_seconds_takes_nothing_back_that_was_seen() {
    let (bench, target) = one_needs_a_gadget().await;
    bench.cluster.authorise(|attempt| attempt.resource != "gadgets" || attempt.user != "operator");
    bench.cluster.cut_watches();
    bench.until("refused", |bench| bench.watch.forbidden(&gadget()).is_some()).await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert!(!is_withheld(&bench, &target));
    bench.cluster.allow_everything();
    bench.until("given back", |bench| bench.watch.trouble(&gadget()).is_none()).await;
    assert!(!is_withheld(&bench, &target));
    assert_eq!(bench.woken(), BTreeSet::new(), "no object needs a pass");
}

#[tokio::test(start_paused = true)]
async fn failed_authentication_withholds_no_known_object() {
    let (bench, target) = one_needs_a_gadget().await;
    bench.cluster.set_faults(|attempt: &Attempt, _: &mut fastrand::Rng| match attempt.resource.as_str() {
        "gadgets" => Verdict::from(Outcome::FailBefore(Failure::Server(401))),
        _ => Verdict::default(),
    });
    bench.cluster.cut_watches();
    bench.until("the watch reports it", |bench| bench.watch.forbidden(&gadget()).is_some()).await;
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert!(bench.watch.forbidden(&gadget()).is_some() && !is_withheld(&bench, &target));
    assert_eq!(bench.woken(), BTreeSet::new(), "no object needs a pass");
}

#[tokio::test(start_paused = true)]
async fn a_needed_secret_keeps_its_facts_for_a_while_after_the_right_to_read_it_is_gone() {
    let bench = Bench::start().await;
    bench.put(object(&widget(), "a", json!({}))).await;
    bench.put(secret("s", "1")).await;
    let target = named(&of("v1 Secret"), "t", "s");
    bench.watch.set_needs(&Bench::key("a"), [&target]).unwrap();
    let look = |bench: &Bench| bench.watch.lookup().look_up(&target);
    let is_there = |bench: &Bench| matches!(look(bench), Sighting::Secret(facts) if facts.present);
    bench.until("it was read", is_there).await;
    let before = look(&bench);
    bench.quiet().await;
    bench.woken();
    let reads = |attempt: &Attempt| attempt.verb == Verb::Get && attempt.resource == "secrets";
    bench.cluster.authorise(move |attempt| !reads(attempt) || attempt.user != "operator");
    bench.put(secret("s", "2")).await;
    bench.quiet().await;
    assert_eq!((look(&bench), bench.woken()), (before.clone(), BTreeSet::new()));
    bench.until("withheld", |bench| is_withheld(bench, &target)).await;
    assert_eq!(bench.woken(), BTreeSet::from(["t/a".to_owned()]));
    bench.cluster.allow_everything();
    bench.until("it was read again", is_there).await;
    assert_ne!(look(&bench), before);
    assert_eq!(bench.woken(), BTreeSet::from(["t/a".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn a_start_without_rights_reports_the_missing_rights_and_continues_once_they_are_granted() {
    let (cluster, client) = cluster(0);
    Bench::prepare(&cluster, &client).await;
    put(&client, object(&widget(), "a", json!({}))).await;
    cluster.authorise(|attempt| attempt.resource != "widgets" || attempt.user != "operator");
    let bench = Bench::attach(cluster, client, options());
    bench.until("refused", |bench| bench.watch.forbidden(&widget()).is_some()).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    let missing = bench.watch.synced().unwrap_err();
    assert_eq!(missing.len(), 1);
    assert!(missing[0].starts_with("test.io/v1 Widget: the operator lacks the right to read"), "{missing:?}");
    bench.cluster.allow_everything();
    bench.until("synced", |bench| bench.watch.synced().is_ok()).await;
    assert_eq!(bench.woken(), BTreeSet::from(["t/a".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn in_listed_namespaces_nothing_is_asked_of_the_cluster_as_a_whole() {
    let (cluster, client) = cluster(0);
    Bench::prepare(&cluster, &client).await;
    cluster.authorise(|attempt| attempt.user != "operator" || attempt.namespace == "t");
    let scope = Scope::Listed(BTreeSet::from(["t".to_owned()]));
    let bench = Bench::attach(cluster, client, WatchOptions { scope, ..options() });
    bench.until("synced", |bench| bench.watch.synced().is_ok()).await;
    let mut elsewhere = object(&widget(), "b", json!({}));
    elsewhere["metadata"]["namespace"] = json!("u");
    bench.put(elsewhere).await;
    let owner = bench.put(object(&widget(), "a", json!({}))).await;
    bench.wakes(&["t/a"]).await;
    bench.put(child(&owner, "c", true)).await;
    bench.wakes(&["t/a"]).await;
    let look = |target| bench.watch.lookup().look_up(&target);
    assert!(matches!(look(named(&gadget(), "u", "g")), Sighting::Forbidden(why) if why.contains("namespace u")));
    assert!(
        matches!(look(named(&of("v1 Namespace"), "t", "t")), Sighting::Forbidden(why) if why.contains("cluster-scoped"))
    );
    assert_eq!(look(named(&gadget(), "t", "g")), Sighting::Objects(vec![]));
    let refused = bench.requests().into_iter().filter(|entry| entry.code == 403).count();
    assert_eq!(refused, 0);
}

#[tokio::test(start_paused = true)]
async fn a_listed_namespace_in_which_nothing_may_be_read_is_not_waited_for_while_another_can_be() {
    let (cluster, client) = cluster(0);
    Bench::prepare(&cluster, &client).await;
    put(&client, object(&widget(), "a", json!({}))).await;
    // Remove all rights in the namespace `u`, as if it was deleted together with its Roles.
    cluster.authorise(|attempt| attempt.user != "operator" || attempt.namespace != "u");
    let scope = Scope::Listed(["t", "u"].map(str::to_owned).into());
    let bench = Bench::attach(cluster, client, WatchOptions { scope, ..options() });
    bench.until("synced", |bench| bench.watch.synced().is_ok()).await;
    assert_eq!(bench.watch.barred(), BTreeSet::from(["u".to_owned()]));
    assert_eq!(bench.woken(), BTreeSet::from(["t/a".to_owned()]));
    // A separate metric reports the namespace. The metric of the watch's state ignores the namespace.
    let text = bench.metrics.text();
    assert!(text.contains(r#"watch_state{group="test.io",kind="Widget",state="synced"} 1"#), "{text}");
    assert!(text.contains("namespaces_barred 1"), "{text}");
    // If the operator may read some types in a namespace, readiness waits for the other types in this namespace.
    bench
        .cluster
        .authorise(|attempt| attempt.user != "operator" || attempt.namespace != "u" || attempt.resource == "gadgets");
    bench.until("waited for", |bench| bench.watch.synced().is_err()).await;
    assert!(bench.watch.barred().is_empty());
    let text = bench.metrics.text();
    assert!(text.contains(r#"watch_state{group="test.io",kind="Widget",state="forbidden"} 1"#), "{text}");
    assert!(text.contains("namespaces_barred 0"), "{text}");
    bench.cluster.allow_everything();
    bench.until("synced", |bench| bench.watch.synced().is_ok() && bench.watch.trouble(&widget()).is_none()).await;
    assert!(bench.watch.barred().is_empty());
}

/// Lets two minutes pass, in which the operator retries. Checks that readiness and passes never wait for the namespace
/// `u`.
async fn u_is_not_waited_for(bench: &Bench) {
    bench.requests();
    for _ in 0..1_200 {
        assert_eq!((bench.watch.synced(), bench.watch.barred()), (Ok(()), BTreeSet::from(["u".to_owned()])));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let tried = bench.requests().into_iter().filter(|entry| entry.attempt.namespace == "u").count();
    assert!(tried > 0, "the operator sent no requests");
}

#[tokio::test(start_paused = true)]
async fn a_listed_namespace_in_which_nothing_may_be_read_is_not_waited_for_while_the_server_restarts() {
    let (cluster, client) = cluster(0);
    Bench::prepare(&cluster, &client).await;
    put(&client, object(&widget(), "a", json!({}))).await;
    cluster.authorise(|attempt| attempt.user != "operator" || attempt.namespace != "u");
    let scope = Scope::Listed(["t", "u"].map(str::to_owned).into());
    let bench = Bench::attach(cluster, client, WatchOptions { scope, ..options() });
    bench.until("synced", |bench| bench.watch.synced().is_ok()).await;
    bench.quiet().await;
    bench.woken();
    for failure in [Failure::Disconnect, Failure::Server(503), Failure::Throttled(1)] {
        bench.cluster.set_faults(move |attempt: &Attempt, _: &mut fastrand::Rng| match attempt.user.as_str() {
            "operator" => Verdict::from(Outcome::FailBefore(failure)),
            _ => Verdict::default(),
        });
        bench.cluster.cut_watches();
        u_is_not_waited_for(&bench).await;
        bench.cluster.set_faults(NoFaults);
        u_is_not_waited_for(&bench).await;
        assert_eq!(bench.woken(), BTreeSet::new(), "no object needs a pass");
    }
    // Refuse everything, like a starting server that does not know the Roles yet.
    bench.cluster.authorise(|attempt| attempt.user != "operator");
    bench.cluster.cut_watches();
    u_is_not_waited_for(&bench).await;
    // Errors other than missing rights make the operator not ready.
    bench.cluster.allow_everything();
    bench.cluster.set_faults(|attempt: &Attempt, _: &mut fastrand::Rng| match attempt.namespace.as_str() {
        "u" => Verdict::from(Outcome::FailBefore(Failure::Server(500))),
        _ => Verdict::default(),
    });
    let is_told =
        |bench: &Bench| bench.watch.synced().is_err_and(|missing| missing.iter().all(|it| it.contains("500")));
    bench.until("told", is_told).await;
    assert!(bench.watch.barred().is_empty());
    bench.cluster.set_faults(NoFaults);
    bench.until("synced", |bench| bench.watch.synced().is_ok() && bench.watch.trouble(&widget()).is_none()).await;
    assert!(bench.watch.barred().is_empty());
}

#[tokio::test(start_paused = true)]
async fn rights_that_are_missing_in_all_listed_namespaces_are_waited_for() {
    let (cluster, client) = cluster(0);
    Bench::prepare(&cluster, &client).await;
    cluster.authorise(|attempt| attempt.user != "operator" || attempt.namespace.is_empty());
    let scope = Scope::Listed(["t", "u"].map(str::to_owned).into());
    let bench = Bench::attach(cluster, client, WatchOptions { scope, ..options() });
    bench.until("refused", |bench| bench.watch.forbidden(&widget()).is_some()).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    let missing = bench.watch.synced().unwrap_err();
    assert!(missing[0].contains("the operator lacks the right to read"), "{missing:?}");
    assert!(bench.watch.barred().is_empty());
    let text = bench.metrics.text();
    assert!(text.contains(r#"watch_state{group="test.io",kind="Widget",state="forbidden"} 1"#), "{text}");
    bench.cluster.allow_everything();
    bench.until("synced", |bench| bench.watch.synced().is_ok()).await;
}
