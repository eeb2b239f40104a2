//! Tests a model on an embedded cluster, with a clock that stands still while there is work to do.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use kaos_cluster::{
    Cluster as TestCluster, TokioClock,
    faults::{Attempt, Failure, NoFaults, Outcome, Verb, Verdict},
};
use kaos_policy::contract::{HOME, ResourceType};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{
    start::{REREAD, start},
    watched_type::{Role, WatchedType},
    *,
};
use crate::{
    cli::facts::OperatorFacts, definitions::embedded, input::Identity, policies::sample_cluster, watch::Served,
};

/// The number of objects in the tests of a cluster at rest, unless an environment variable sets another number.
const OBJECTS: usize = 100;

/// Returns a cluster that serves the default kinds, with these namespaces.
pub(in crate::cli::console) async fn cluster(namespaces: &[&str]) -> TestCluster {
    let clock = TokioClock::starting_at("2026-01-01T00:00:00Z".parse().expect("a time"));
    let cluster = TestCluster::builder().clock(clock).without_controllers().start();
    for definition in embedded() {
        cluster.plant("apiextensions.k8s.io", "customresourcedefinitions", definition);
    }
    for name in [&[HOME][..], namespaces].concat() {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        cluster.plant("", "namespaces", namespace);
    }
    cluster.settled().await;
    cluster
}

/// Adds an object that is ready, or not.
pub(in crate::cli::console) fn add(
    cluster: &TestCluster,
    (plural, kind): (&str, &str),
    (namespace, name): (&str, &str),
    is_ready: bool,
) {
    let spec = match kind {
        "Agent" => json!({"modelAPI": "llm", "model": "gpt"}),
        _ => json!({"mode": "Proxy", "proxyConfig": {"models": ["*"]}}),
    };
    let status = if is_ready { "True" } else { "False" };
    let object = json!({
        "apiVersion": "kaos.tools/v1alpha1", "kind": kind,
        "metadata": {"name": name, "namespace": namespace, "generation": 1}, "spec": spec,
        "status": {"observedGeneration": 1, "phase": "Ready", "ready": is_ready, "endpoint": "http://llm:8000",
            "conditions": [{"type": "Ready", "status": status, "reason": "Test", "message": "for the test"}]},
    });
    cluster.plant("kaos.tools", plural, object);
}

pub(in crate::cli::console) const AGENT: (&str, &str) = ("agents", "Agent");
pub(in crate::cli::console) const MODEL_API: (&str, &str) = ("modelapis", "ModelAPI");

/// Starts a model, and waits until it knows all objects and their connections.
pub(in crate::cli::console) async fn model(cluster: &TestCluster, named: &[&str]) -> Arc<Model> {
    let client = kube::Client::new(cluster.service(), "default");
    let named = named.iter().map(|&name| name.to_owned()).collect();
    let model =
        start(client, OperatorFacts { cluster: sample_cluster(), policies: Vec::new() }, named).await.expect("a model");
    until(|| !model.is_loading() && model.unconnected(1).1.is_empty()).await;
    model
}

/// Waits until something is true. The clock of the test goes on only if there is nothing else to do.
pub(in crate::cli::console) async fn until(is_so: impl Fn() -> bool) {
    for _ in 0..100_000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the test waits for ever");
}

fn shown(model: &Model) -> Vec<String> {
    model.with_claimed(|all| all.map(|(identity, _)| identity.to_string()).collect())
}

#[tokio::test(start_paused = true)]
async fn a_cluster_at_rest_gets_no_requests_and_no_object_is_evaluated_again() {
    let objects = std::env::var("KAOS_CONSOLE_OBJECTS").map_or(OBJECTS, |number| number.parse().expect("a number"));
    let cluster = cluster(&["team"]).await;
    add(&cluster, MODEL_API, ("team", "llm"), true);
    for number in 0..objects {
        add(&cluster, AGENT, ("team", &format!("agent-{number}")), true);
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
    let lists = cluster.journal().count(|entry| entry.attempt.verb == Verb::List && entry.attempt.resource == "agents");
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
        add(&cluster, AGENT, ("team", name), true);
    }
    let model = model(&cluster, &[]).await;
    let before = model.evaluations.load(Ordering::Relaxed);
    add(&cluster, AGENT, ("team", "a"), false);
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
        add(&cluster, AGENT, (namespace, "a"), true);
        add(&cluster, MODEL_API, (namespace, "m"), true);
    }
    // The user may see ModelAPIs in more namespaces than Agents. Agents are the first kind by name.
    restrict(&cluster, |attempt| {
        let place = (&*attempt.resource, &*attempt.namespace);
        matches!(place, ("modelapis", "both" | "models") | ("agents", "both"))
    });
    let model = model(&cluster, &[]).await;
    assert_eq!(shown(&model), ["Agent both/a", "ModelAPI both/m", "ModelAPI models/m"]);
    let limits = model.limits();
    assert_eq!(limits.places.hidden.iter().filter(|hidden| *hidden == "none").count(), 1, "{limits:?}");
    let missing: Vec<String> = limits.missing.iter().map(ToString::to_string).collect();
    let is_told = |start: &str| missing.iter().any(|right| right.contains(start));
    assert!(is_told("list agents.kaos.tools in namespace models") && !is_told("agents.kaos.tools in namespace both"));
    assert!(is_told("list mcpservers.kaos.tools in all namespaces"), "{missing:?}");
}

#[tokio::test(start_paused = true)]
async fn a_kind_of_the_whole_cluster_stays_whole_beside_kinds_with_fewer_rights() {
    let cluster = cluster(&["one", "two"]).await;
    for namespace in ["one", "two"] {
        add(&cluster, AGENT, (namespace, "a"), true);
        add(&cluster, MODEL_API, (namespace, "m"), true);
    }
    restrict(&cluster, |attempt| {
        matches!((&*attempt.resource, &*attempt.namespace), ("modelapis", _) | ("agents", "two"))
    });
    let model = model(&cluster, &[]).await;
    assert_eq!(shown(&model), ["Agent two/a", "ModelAPI one/m", "ModelAPI two/m"]);
    assert!(model.limits().places.hidden.is_empty(), "the user sees ModelAPIs in every namespace");
    let watches = cluster.journal().count(|entry| {
        entry.attempt.verb == Verb::Watch && entry.attempt.resource == "modelapis" && entry.attempt.namespace.is_empty()
    });
    assert_eq!(watches, 1);
}

#[tokio::test(start_paused = true)]
async fn the_user_can_name_the_namespaces() {
    let cluster = cluster(&["one", "two"]).await;
    for namespace in ["one", "two"] {
        add(&cluster, AGENT, (namespace, "a"), true);
    }
    let model = model(&cluster, &["two"]).await;
    assert_eq!(shown(&model), ["Agent two/a"]);
}

#[tokio::test(start_paused = true)]
async fn the_note_about_a_lost_watch_goes_as_soon_as_the_watch_works_again() {
    let cluster = cluster(&["team"]).await;
    add(&cluster, AGENT, ("team", "a"), true);
    let model = model(&cluster, &[]).await;
    assert!(model.limits().broken.is_empty());
    cluster.set_faults(|attempt: &Attempt, _: &mut fastrand::Rng| {
        let is_lost = attempt.verb == Verb::Watch && attempt.resource == "agents";
        if is_lost { Verdict::from(Outcome::FailBefore(Failure::Server(503))) } else { Verdict::default() }
    });
    cluster.cut_watches();
    // The test has cut all watches, but only the watch of Agents cannot continue.
    let is_broken =
        |broken: &[String]| matches!(broken, [one] if one.starts_with("Agent objects may be out of date: "));
    until(|| is_broken(&model.limits().broken)).await;
    cluster.journal().clear();
    cluster.set_faults(NoFaults);
    until(|| model.limits().broken.is_empty()).await;
    let is_list = |attempt: &Attempt| attempt.verb == Verb::List && attempt.resource == "agents";
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

/// Returns the JSON of an object, for tests that change it.
pub(in crate::cli::console) fn stored(cluster: &TestCluster, namespace: &str, name: &str) -> Value {
    let object = cluster.object("kaos.tools", "agents", namespace, name).expect("an Agent");
    (*object).clone()
}
