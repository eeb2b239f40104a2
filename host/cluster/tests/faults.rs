//! Tests injected faults. Also tests that the same seed repeats the same faults.
#![allow(clippy::unwrap_used, clippy::panic, reason = "what tests share fails by panicking")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use crate::support::{api_of, apply, client, code, config_map, config_maps, object, start};
use kaos_cluster::{
    Cluster, TokioClock,
    faults::{Attempt, Failure, FaultPlan, Outcome, SeededFaults, Verb, Verdict},
};
use kube::api::{DeleteParams, DynamicObject, GetParams, ListParams, PostParams};
use serde_json::json;

/// Returns a plan that affects only writes to ConfigMaps, so that the setup of a test succeeds.
fn on_writes(outcome: Outcome) -> impl FnMut(&Attempt, &mut fastrand::Rng) -> Verdict + Send {
    move |attempt: &Attempt, _: &mut fastrand::Rng| {
        if attempt.verb.is_write() { outcome.into() } else { Verdict::default() }
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_before_leaves_no_effect_and_a_failure_after_leaves_one() {
    let (cluster, client) = start().await;
    let api = config_maps(&client);
    for (outcome, there) in [
        (Outcome::FailBefore(Failure::Server(500)), false),
        (Outcome::FailAfter(Failure::Server(500)), true),
        (Outcome::FailBefore(Failure::Disconnect), false),
        (Outcome::FailAfter(Failure::Disconnect), true),
        (Outcome::FailBefore(Failure::Conflict), false),
    ] {
        cluster.set_faults(on_writes(outcome));
        assert!(apply(&api, "a", "one", config_map("a")).await.is_err());
        assert_eq!(cluster.object("", "configmaps", "t", "a").is_some(), there, "{outcome:?}");
        cluster.set_faults(kaos_cluster::faults::NoFaults);
        if there {
            api.delete("a", &DeleteParams::default()).await.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_throttled_client_retries_after_the_given_delay() {
    let (cluster, client) = start().await;
    let mut first = true;
    cluster.set_faults(move |_: &Attempt, _: &mut fastrand::Rng| {
        let throttle = std::mem::replace(&mut first, false);
        if throttle { Outcome::FailBefore(Failure::Throttled(7)).into() } else { Verdict::default() }
    });
    let refused = config_maps(&client).get("kube-root-ca.crt").await;
    if let Err(kube::Error::Api(status)) = &refused {
        assert_eq!(status.code, 429);
    }
    assert_eq!(cluster.journal().count(|entry| entry.code == 429), 1);
}

#[tokio::test(start_paused = true)]
async fn slow_requests_take_simulated_time() {
    let (cluster, client) = start().await;
    cluster.set_faults(|_: &Attempt, _: &mut fastrand::Rng| Verdict {
        delay: Duration::from_secs(9),
        outcome: Outcome::Proceed,
    });
    let start = tokio::time::Instant::now();
    config_maps(&client).get("kube-root-ca.crt").await.unwrap();
    assert_eq!(start.elapsed(), Duration::from_secs(9));
}

#[tokio::test(start_paused = true)]
async fn stale_reads_show_an_older_state_with_its_revision() {
    let (cluster, client) = start().await;
    let api = config_maps(&client);
    apply(&api, "a", "one", config_map("a")).await.unwrap();
    let before = api.list(&ListParams::default()).await.unwrap();
    apply(&api, "b", "one", config_map("b")).await.unwrap();
    cluster.set_faults(|_: &Attempt, _: &mut fastrand::Rng| Verdict::from(Outcome::Stale(1)));
    let stale = api.list(&ListParams::default()).await.unwrap();
    assert_eq!(stale.items.len(), before.items.len());
    assert!(api.get_opt("b").await.unwrap().is_none());
    let revision: u64 = stale.metadata.resource_version.unwrap().parse().unwrap();
    assert!(revision < cluster.revision());
}

#[tokio::test(start_paused = true)]
async fn reads_with_a_version_show_that_version_or_a_newer_one() {
    let (cluster, client) = start().await;
    let api = config_maps(&client);
    let old = apply(&api, "a", "one", config_map("a")).await.unwrap();
    let mut changed = config_map("a");
    changed["data"] = json!({"new": "yes"});
    let new = apply(&api, "a", "one", changed).await.unwrap();
    let version = |object: &DynamicObject| object.metadata.resource_version.clone().unwrap();
    cluster.set_faults(|_: &Attempt, _: &mut fastrand::Rng| Verdict::from(Outcome::Stale(1)));
    let read = async |version: &str| api.get_with("a", &GetParams::at(version)).await;
    assert_eq!(version(&read(&version(&new)).await.unwrap()), version(&new));
    assert_eq!(version(&read(&version(&old)).await.unwrap()), version(&old));
    assert_eq!(code(read("4000000000").await), 504);
}

struct CrashAfter(Verb, Arc<AtomicBool>);

impl FaultPlan for CrashAfter {
    fn applied(&mut self, attempt: &Attempt) {
        if attempt.verb == self.0 {
            self.1.store(true, Ordering::SeqCst);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_plan_can_crash_its_client_between_effect_and_answer() {
    let (cluster, client) = start().await;
    let crashed = Arc::new(AtomicBool::new(false));
    cluster.set_faults(CrashAfter(Verb::Create, Arc::clone(&crashed)));
    config_maps(&client).create(&PostParams::default(), &object(config_map("a"))).await.unwrap();
    assert!(crashed.load(Ordering::SeqCst));
}

/// Creates and reads objects while faults happen. Returns the journal.
async fn run(seed: u64) -> Vec<String> {
    let clock = TokioClock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
    let cluster = Cluster::builder().seed(seed).clock(clock).faults(SeededFaults::everything(0.2)).start();
    let client = client(&cluster);
    let api = api_of(&client, "apps", "v1", "Deployment", Some("default"));
    for at in 0..20 {
        let name = format!("d{}", at % 5);
        let value = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": {"replicas": at % 3,
            "selector": {"matchLabels": {"a": name}}, "template": {"metadata": {"labels": {"a": name}},
                "spec": {"containers": [{"name": "c", "image": format!("i:{at}")}]}}}});
        let _outcome = apply(&api, &name, "one", value).await;
        let _outcome = api.list(&ListParams::default()).await;
    }
    cluster.settled().await;
    let pods = cluster.objects("", "pods").into_iter().map(|pod| pod.to_string());
    cluster.journal().entries().iter().map(ToString::to_string).chain(pods).collect()
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_repeats_a_run_and_another_seed_does_not() {
    let (first, second, other) = (run(7).await, run(7).await, run(8).await);
    assert_eq!(first, second);
    assert_ne!(first, other);
}

#[tokio::test(start_paused = true)]
async fn the_journal_records_each_write_with_its_user() {
    let (cluster, client) = start().await;
    cluster.journal().clear();
    let api = config_maps(&client);
    apply(&api, "a", "one", config_map("a")).await.unwrap();
    api.get("a").await.unwrap();
    let other = kube::Client::new(cluster.service().as_user("somebody"), "t");
    config_maps(&other).delete("a", &DeleteParams::default()).await.unwrap();
    let writes = cluster.journal().writes();
    assert_eq!(writes.len(), 2);
    assert_eq!((writes[0].attempt.verb, writes[0].attempt.name.as_str()), (Verb::Patch, "a"));
    assert_eq!(writes[1].attempt.user, "somebody");
}

#[tokio::test(start_paused = true)]
async fn a_rule_refuses_requests_and_access_reviews_agree() {
    let (cluster, client) = start().await;
    let reader = kube::Client::new(cluster.service().as_user("reader"), "t");
    cluster.authorise(|attempt| attempt.user != "reader" || !attempt.verb.is_write());
    config_maps(&reader).get("kube-root-ca.crt").await.unwrap();
    assert_eq!(code(apply(&config_maps(&reader), "a", "one", config_map("a")).await), 403);
    apply(&config_maps(&client), "a", "one", config_map("a")).await.unwrap();
    let reviews = api_of(&reader, "authorization.k8s.io", "v1", "SelfSubjectAccessReview", None);
    for (verb, allowed) in [("list", true), ("delete", false)] {
        let review =
            object(json!({"spec": {"resourceAttributes": {"verb": verb, "resource": "configmaps", "namespace": "t"}}}));
        let answer = reviews.create(&PostParams::default(), &review).await.unwrap();
        assert_eq!(answer.data["status"]["allowed"], allowed, "{verb}");
    }
    cluster.allow_everything();
    apply(&config_maps(&reader), "b", "one", config_map("b")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn stored_roles_decide_access_under_rbac() {
    let (cluster, client) = start().await;
    cluster.authorise_by_rbac();
    let operator = kube::Client::new(cluster.service().as_user("system:serviceaccount:t:op"), "t");
    let api = config_maps(&operator);
    assert_eq!(code(api.list(&ListParams::default()).await), 403);
    let roles = api_of(&client, "rbac.authorization.k8s.io", "v1", "Role", Some("t"));
    let role = object(json!({"metadata": {"name": "r"}, "rules": [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list", "patch", "create"]}]}));
    roles.create(&PostParams::default(), &role).await.unwrap();
    let bindings = api_of(&client, "rbac.authorization.k8s.io", "v1", "RoleBinding", Some("t"));
    let binding = object(
        json!({"metadata": {"name": "b"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
        "subjects": [{"kind": "ServiceAccount", "name": "op", "namespace": "t"}]}),
    );
    bindings.create(&PostParams::default(), &binding).await.unwrap();
    api.list(&ListParams::default()).await.unwrap();
    apply(&api, "a", "one", config_map("a")).await.unwrap();
    assert_eq!(code(api.delete("a", &DeleteParams::default()).await), 403);
    let leases = api_of(&operator, "coordination.k8s.io", "v1", "Lease", Some("t"));
    assert_eq!(code(leases.get("l").await), 403);
    let everywhere = api_of(&operator, "", "v1", "ConfigMap", None);
    assert_eq!(code(everywhere.list(&ListParams::default()).await), 403);
    bindings.delete("b", &DeleteParams::default()).await.unwrap();
    assert_eq!(code(api.list(&ListParams::default()).await), 403);
}

#[tokio::test(start_paused = true)]
async fn rules_reviews_list_stored_rules_and_are_incomplete_for_a_test_rule() {
    let (cluster, client) = start().await;
    let operator = kube::Client::new(cluster.service().as_user("system:serviceaccount:t:op"), "t");
    let reviews = api_of(&operator, "authorization.k8s.io", "v1", "SelfSubjectRulesReview", None);
    let ask = async |namespace: &str| {
        let review = object(json!({"spec": {"namespace": namespace}}));
        reviews.create(&PostParams::default(), &review).await.map(|answer| answer.data["status"].clone())
    };
    let everything = json!([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]);
    assert_eq!(ask("t").await.unwrap()["resourceRules"], everything);
    assert_eq!(code(ask("").await), 400);
    cluster.authorise(|_| true);
    let told = ask("t").await.unwrap();
    assert_eq!((&told["incomplete"], &told["resourceRules"]), (&json!(true), &json!([])));
    cluster.authorise_by_rbac();
    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}]);
    let roles = api_of(&client, "rbac.authorization.k8s.io", "v1", "Role", Some("t"));
    let role = object(json!({"metadata": {"name": "r"}, "rules": rules}));
    roles.create(&PostParams::default(), &role).await.unwrap();
    let bindings = api_of(&client, "rbac.authorization.k8s.io", "v1", "RoleBinding", Some("t"));
    let binding = object(
        json!({"metadata": {"name": "b"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
        "subjects": [{"kind": "ServiceAccount", "name": "op", "namespace": "t"}]}),
    );
    bindings.create(&PostParams::default(), &binding).await.unwrap();
    for (namespace, given) in [("t", rules), ("*", json!([])), ("default", json!([]))] {
        let told = ask(namespace).await.unwrap();
        assert_eq!((&told["incomplete"], &told["resourceRules"]), (&json!(false), &given), "{namespace}");
    }
}
