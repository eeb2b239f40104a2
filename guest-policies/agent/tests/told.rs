//! The messages to an Agent's user, and the environment of its process.

#![allow(clippy::panic, clippy::unwrap_used)] // helpers of tests; a failure should stop them

use kaos_agent::Agent;
use kaos_policy_sdk::types::{Outcome, Plan, Refusal, Subject, Truth};
use kaos_policy_sdk::{Policy, testing};
use serde_json::{Value, json};

fn api(status: &Value) -> Value {
    json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "ModelAPI", "metadata": {"name": "llm", "namespace": "ns"},
           "spec": {"mode": "Proxy", "proxyConfig": {"models": ["*"]}}, "status": status})
}

/// Returns an Agent with `spec`, and a ModelAPI with `status`.
fn subject(spec: &Value, status: &Value) -> Subject {
    let mut all = json!({"modelAPI": "llm", "model": "m"});
    for (field, value) in spec.as_object().unwrap() {
        all[field.as_str()] = value.clone();
    }
    let metadata = json!({"name": "a", "namespace": "ns"});
    let object = json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "Agent", "metadata": metadata, "spec": all});
    testing::subject(&object).beside::<Agent>(&[api(status)]).build()
}

fn answer(spec: &Value) -> Result<Plan, Refusal> {
    testing::plan::<Agent>(&subject(spec, &json!({"ready": true, "endpoint": "http://llm"})))
}

fn env<'a>(plan: &'a Plan, name: &str) -> Option<&'a str> {
    testing::env_value(&plan.env, "agent", name)
}

#[test]
fn a_failed_dependency_is_reported_and_a_rollout_counts_as_serving() {
    let told = |phase: &str| {
        let status =
            json!({"ready": false, "endpoint": "http://llm", "phase": phase, "deployment": {"availableReplicas": 1}});
        let subject = subject(&json!({}), &status);
        let report = Agent::assess(&subject, &testing::observation(Outcome::Applied).build());
        let condition = report.conditions.into_iter().find(|it| it.type_ == "DependenciesReady").unwrap();
        (condition.status, condition.reason, condition.message)
    };
    let failed = "ModelAPI llm has failed; its older pods still serve";
    assert_eq!(told("Failed"), (Truth::No, "NotReady".into(), failed.into()));
    assert_eq!(told("Pending"), (Truth::Yes, "Ready".into(), "every dependency serves".into()));
}

#[test]
fn a_peer_with_an_invalid_name_is_not_waited_for() {
    let plan = answer(&json!({"agentNetwork": {"access": ["Not_A_Name"]}})).unwrap();
    let note = plan.notes.iter().find(|note| note.reason == "PeerNameInvalid").unwrap();
    assert_eq!(
        note.message,
        "peer Agent Not_A_Name is ignored, since no object can have this name: use lower-case letters, digits, `-` and `.`"
    );
}

#[test]
fn a_pattern_as_model_gives_a_note_and_a_blank_model_is_refused() {
    for (model, is_told) in [("openai/*", true), ("*", true), ("openai/", true), ("openai/gpt-4o", false), ("m", false)]
    {
        let plan = answer(&json!({"model": model})).unwrap();
        let told = plan.notes.iter().any(|it| it.reason == "ModelUnlikely" && it.path.as_deref() == Some("spec.model"));
        assert_eq!(told, is_told, "{model}");
    }
    let Err(Refusal::Invalid(wrong)) = answer(&json!({"model": "  "})) else { panic!("must be refused") };
    assert_eq!(wrong[0].path, "spec.model");
}

#[test]
fn an_older_field_with_a_newer_one_is_reported_as_ignored() {
    let variable = json!([{"name": "A", "value": "1"}]);
    let spec = json!({
        "resources": {}, "container": {"resources": {}, "env": variable},
        "config": {"env": variable, "reasoningLoopMaxSteps": 5, "agenticLoop": {"maxSteps": 4}},
    });
    let notes = answer(&spec).unwrap().notes;
    let ignored =
        notes.iter().filter(|it| it.message.contains("is ignored, since")).filter_map(|it| it.path.as_deref());
    let wanted = ["spec.resources", "spec.config.env", "spec.config.agenticLoop.maxSteps"];
    assert_eq!(ignored.collect::<Vec<_>>(), wanted);
}

#[test]
fn texts_reach_the_agent_unchanged() {
    let spec = json!({
        "model": "$(A)", "config": {"description": "$$", "instructions": "$(A)", "autonomous": {"goal": "$(A) for $5"}},
        "container": {"env": [{"name": "A", "value": "$(B)"}]},
    });
    let plan = answer(&spec).unwrap();
    let expected = [
        ("MODEL_NAME", "$$(A)"),
        ("AGENT_DESCRIPTION", "$$$"),
        ("AGENT_INSTRUCTIONS", "$$(A)"),
        ("AUTONOMOUS_GOAL", "$$(A) for $5"),
        ("A", "$(B)"),
    ];
    for (name, value) in expected {
        assert_eq!(env(&plan, name), Some(value), "{name}");
    }
}

#[test]
fn the_telemetry_endpoint_may_refer_to_a_variable() {
    let host = json!({"fieldRef": {"fieldPath": "status.hostIP"}});
    let spec = json!({
        "config": {"telemetry": {"enabled": true, "endpoint": "http://$(HOST_IP):4317"}},
        "container": {"env": [{"name": "HOST_IP", "valueFrom": host}]},
    });
    assert_eq!(env(&answer(&spec).unwrap(), "OTEL_EXPORTER_OTLP_ENDPOINT"), Some("http://$(HOST_IP):4317"));
}
