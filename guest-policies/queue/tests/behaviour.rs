//! Tests the plan and the status of a Queue.
#![allow(clippy::unwrap_used, clippy::panic)]

use kaos_policy_sdk::testing::{self, SubjectBuilder};
use kaos_policy_sdk::types::{Outcome, Plan, Refusal, Report, Severity, Truth};
use kaos_policy_sdk::{Policy, env};
use queue_policy::Queue;
use serde_json::{Value, json};

const SCHEMA: &str = include_str!("../settings.schema.json");

fn queue(spec: &Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Queue", "metadata": {"name": "orders", "namespace": "shop"},
           "spec": spec})
}

fn secret(data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login", "namespace": "shop"}, "data": data})
}

fn with_password() -> Value {
    queue(&json!({"replicas": 3, "credentialsSecret": "login"}))
}

/// Begins to build a subject with the default settings.
fn subject(object: &Value) -> SubjectBuilder {
    testing::subject(object).defaults(SCHEMA)
}

fn plan(object: &Value, beside: &[Value]) -> Result<Plan, Refusal> {
    testing::plan::<Queue>(&subject(object).beside::<Queue>(beside).build())
}

fn digest(plan: &Plan) -> Option<String> {
    let template = testing::manifest(plan, "StatefulSet").at(&["spec", "template", "metadata"]).cloned().unwrap();
    template["annotations"]["example.com/login-digest"].as_str().map(str::to_owned)
}

fn conf(plan: &Plan) -> String {
    testing::manifest(plan, "ConfigMap").str_at(&["data", "nats.conf"]).unwrap().to_owned()
}

#[test]
fn a_new_password_changes_the_annotation_of_the_pods() {
    let old = plan(&with_password(), &[secret(&json!({"password": "YQ=="}))]).unwrap();
    let new = plan(&with_password(), &[secret(&json!({"password": "Yg=="}))]).unwrap();
    assert!(digest(&old).is_some() && digest(&old) != digest(&new));
    assert!(old.gates.is_empty() && old.notes.is_empty() && !old.gates_hold);
    assert_eq!(old.env[1].source, env::secret_key("login", "password"));
    assert_eq!(old.env[1].origin, "spec.credentialsSecret");
}

#[test]
fn without_the_secret_or_its_key_the_plan_waits_and_names_the_reason() {
    for (beside, reason, message) in [
        (vec![], "NotFound", "Secret login not found"),
        (vec![secret(&json!({"token": ""}))], "KeyNotFound", "Secret login has no key password"),
    ] {
        let plan = plan(&with_password(), &beside).unwrap();
        assert!(plan.gates_hold && digest(&plan).is_none());
        assert_eq!((plan.gates[0].reason.as_str(), plan.gates[0].message.as_str()), (reason, message));
        let note = &plan.notes[0];
        assert_eq!((note.severity, note.path.as_deref()), (Severity::Warning, Some("spec.credentialsSecret")));
        assert_eq!(
            note.message,
            format!("{message}: the servers keep their configuration until the Secret has a password")
        );
    }
}

#[test]
fn an_operator_that_does_not_look_at_secrets_causes_a_note_and_no_wait() {
    let subject = subject(&with_password()).no_secrets().beside::<Queue>(&[]).build();
    let plan = testing::plan::<Queue>(&subject).unwrap();
    assert!(plan.gates.is_empty() && digest(&plan).is_none());
    assert_eq!((plan.notes[0].severity, plan.notes[0].reason.as_str()), (Severity::Info, "SecretNotWatched"));
    assert!(plan.notes[0].message.contains("--watch-secrets"), "{}", plan.notes[0].message);
    let report = Queue::assess(&subject, &testing::observation(Outcome::Applied).build());
    assert_eq!((&report.conditions[0].status, &*report.conditions[0].reason), (&Truth::Unknown, "SecretNotWatched"));
}

#[test]
fn the_extra_configuration_is_appended_to_the_configuration_of_the_servers() {
    let object = queue(&json!({"configFrom": "more"}));
    let more = |data: &Value| {
        json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "more", "namespace": "shop"}, "data": data})
    };
    let found = plan(&object, &[more(&json!({"extra.conf": "max_payload: 2MB\n"}))]).unwrap();
    assert!(conf(&found).ends_with("\nmax_payload: 2MB\n") && found.gates.is_empty());
    let without_key = plan(&object, &[more(&json!({"other": ""}))]).unwrap();
    assert_eq!(without_key.gates[0].message, "ConfigMap more has no key extra.conf");
    assert_eq!(plan(&object, &[]).unwrap().gates[0].message, "ConfigMap more not found");
}

#[test]
fn several_servers_know_each_other() {
    let three = conf(&plan(&queue(&json!({"replicas": 3})), &[]).unwrap());
    assert!(three.contains("nats://orders-2.orders.shop.svc.cluster.local:6222"), "{three}");
    let one = conf(&plan(&queue(&json!({})), &[]).unwrap());
    assert!(!one.contains("cluster {") && !one.contains("authorization"), "{one}");
}

#[test]
fn the_spec_wins_over_the_settings() {
    let settings = json!({"image": "nats:test", "logLevel": "debug", "maxMessages": 7});
    let made = |spec: &Value| {
        let subject = testing::subject(&queue(spec)).settings(&settings).defaults(SCHEMA).beside::<Queue>(&[]).build();
        testing::plan::<Queue>(&subject).unwrap()
    };
    let (own, shared) = (made(&json!({"image": "mine:1", "maxMessages": 9})), made(&json!({})));
    let image = |plan: &Plan| {
        let set = testing::manifest(plan, "StatefulSet");
        set.at(&["spec", "template", "spec", "containers"]).unwrap()[0]["image"].clone()
    };
    assert_eq!((image(&own), image(&shared)), (json!("mine:1"), json!("nats:test")));
    assert!(conf(&own).contains("max_ack_pending: 9") && conf(&shared).contains("max_ack_pending: 7"));
    assert!(conf(&own).contains("debug: true\ntrace: false\n"));
    let origin = |plan: &Plan| plan.origins.iter().find(|it| it.path.ends_with(".image")).unwrap().from.clone();
    assert_eq!((origin(&own), origin(&shared)), ("spec.image".to_owned(), "settings.image".to_owned()));
}

#[test]
fn wrong_fields_are_refused_with_their_paths() {
    let paths = |object: &Value| {
        let Err(Refusal::Invalid(wrong)) = plan(object, &[]) else { panic!("the policy accepted {object}") };
        wrong.into_iter().map(|it| it.path).collect::<Vec<_>>()
    };
    let spec = json!({"replicas": 2, "maxMessages": 0, "credentialsSecret": "No Name", "configFrom": ""});
    let all = ["spec.replicas", "spec.maxMessages", "spec.credentialsSecret", "spec.configFrom"];
    assert_eq!(paths(&queue(&spec)), all);
    assert_eq!(paths(&queue(&json!({"storage": {"size": 5}}))), ["spec.storage.size"]);
    let mut long = queue(&json!({}));
    long["metadata"]["name"] = json!("q".repeat(53));
    assert_eq!(paths(&long), ["metadata.name"]);
    long["metadata"]["name"] = json!("my.queue");
    assert_eq!(paths(&long), ["metadata.name"]);
}

fn report(outcome: Outcome, available: u64, gates: bool) -> Report {
    let live = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "orders", "generation": 1},
        "spec": {"replicas": 3}, "status": {"observedGeneration": 1, "replicas": 3, "updatedReplicas": 3,
            "readyReplicas": available, "availableReplicas": available}});
    let subject = subject(&with_password()).beside::<Queue>(&[]).build();
    let mut seen = testing::observation(outcome).child(&live);
    if gates {
        seen = seen.plan(&testing::plan::<Queue>(&subject).unwrap());
    }
    Queue::assess(&subject, &seen.build())
}

#[test]
fn a_queue_is_ready_with_a_majority_of_its_servers() {
    let said = |report: &Report| (report.ready, report.phase.clone(), report.message.clone());
    let expected = |ready, phase: &str, message: &str| (ready, phase.to_owned(), message.to_owned());
    assert_eq!(said(&report(Outcome::Applied, 1, false)), expected(false, "Pending", "1 of 3 servers available"));
    let subject = subject(&with_password()).beside::<Queue>(&[]).build();
    let none = Queue::assess(&subject, &testing::observation(Outcome::Applied).build());
    assert_eq!(said(&none), expected(false, "Pending", "0 of 3 servers available"));
    let up = report(Outcome::Applied, 2, false);
    assert_eq!(said(&up), expected(true, "Ready", "2 of 3 servers available"));
    let fields: Value = serde_json::from_str(&up.fields).unwrap();
    assert_eq!(
        fields,
        json!({"endpoint": "nats://orders.shop.svc.cluster.local:4222", "replicas": 3,
        "readyReplicas": 2, "selector": "app=queue,queue=orders"})
    );
}

#[test]
fn a_lost_secret_stops_a_new_queue_but_not_a_running_one() {
    let new = report(Outcome::Gated, 0, true);
    assert_eq!((new.ready, &*new.phase, &*new.message), (false, "Waiting", "Secret login not found"));
    assert_eq!((&new.conditions[0].status, &*new.conditions[0].reason), (&Truth::No, "NotFound"));
    assert!(report(Outcome::Gated, 3, true).ready);
    let refused = report(Outcome::Refused(kaos_policy_sdk::refusal::invalid("spec.replicas", "is even")), 3, false);
    assert_eq!((refused.ready, &*refused.message), (false, "spec.replicas: is even"));
}
