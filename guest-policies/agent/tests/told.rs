//! Tests the messages to an Agent's user, and the environment variables of the Agent's container.

#![allow(clippy::panic, clippy::unwrap_used)] // helpers of tests; a failure must end the test

use kaos_agent::Agent;
use kaos_policy_sdk::types::{Note, Outcome, Plan, Refusal, Severity, Subject, Truth};
use kaos_policy_sdk::{Policy, testing};
use serde_json::{Value, json};

fn api(status: &Value) -> Value {
    json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "ModelAPI", "metadata": {"name": "llm", "namespace": "ns"},
           "spec": {"mode": "Proxy", "proxyConfig": {"models": ["*"]}}, "status": status})
}

/// Returns the subject for an Agent with `spec`, next to a ModelAPI with `status`.
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

/// Returns each note about a variable that the image ignores: the field that asks for the variable, and the message.
fn ignored(spec: &Value, settings: &Value) -> Vec<(String, String)> {
    let mut all = testing::defaults(&Agent::describe().settings_schema);
    for (name, value) in settings.as_object().unwrap() {
        all[name.as_str()] = value.clone();
    }
    let mut spec = spec.clone();
    (spec["modelAPI"], spec["model"]) = (json!("llm"), json!("m"));
    let metadata = json!({"name": "a", "namespace": "ns"});
    let object = json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "Agent", "metadata": metadata, "spec": spec});
    let store = json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "MemoryStore", "spec": {},
        "metadata": {"name": "notes", "namespace": "ns"}, "status": {"ready": true, "endpoint": "http://notes"}});
    let subject = testing::subject(&object)
        .settings(&all)
        .beside::<Agent>(&[api(&json!({"ready": true, "endpoint": "http://llm"})), store])
        .build();
    let plan = testing::plan::<Agent>(&subject).unwrap();
    let report = Agent::assess(&subject, &testing::observation(Outcome::Applied).plan(&plan).build());
    let told: Vec<Note> = plan.notes.into_iter().filter(|note| note.reason == "VariableIgnored").collect();
    let warned: Vec<&str> =
        told.iter().filter(|it| it.severity == Severity::Warning).map(|it| it.message.as_str()).collect();
    let condition = report.conditions.into_iter().find(|it| it.type_ == "VariablesRead");
    assert_eq!(condition.as_ref().map(|it| it.message.clone()).unwrap_or_default(), warned.join("; "));
    assert!(condition.is_none_or(|it| it.status == Truth::No && it.reason == "ImageIgnores"));
    told.into_iter().map(|note| (note.path.unwrap(), note.message)).collect()
}

#[test]
fn a_variable_that_the_image_ignores_is_told_with_the_version_that_reads_it() {
    let spec = json!({"config": {"autonomous": {"goal": "Keep the shelves full."}}});
    let told = ignored(&spec, &json!({}));
    let message = "the image axsauze/kaos-agent:v0.1.4-dev reads no AUTONOMOUS_GOAL, so spec.config.autonomous.goal has no \
                   effect: use 0.4 or newer";
    assert_eq!(told, [("spec.config.autonomous.goal".to_owned(), message.to_owned())]);
    for (image, is_told) in [
        ("axsauze/kaos-agent:0.3.1", true),
        ("mirror.example.com/axsauze/kaos-agent:0.3.1@sha256:00", true),
        ("axsauze/kaos-agent:0.4.0-dev", false),
        ("axsauze/kaos-agent:0.8.4", false),
        ("axsauze/kaos-agent:latest", false),
        ("axsauze/kaos-agent", false),
        ("example.com/my-kaos-agent:0.1", false),
        ("example.com/mine:0.1", false),
    ] {
        assert_eq!(!ignored(&spec, &json!({"image": image})).is_empty(), is_told, "{image}");
        let mut own = spec.clone();
        own["container"] = json!({"image": image});
        assert_eq!(!ignored(&own, &json!({})).is_empty(), is_told, "{image} of the Agent");
        let mut own = spec.clone();
        own["podSpec"] = json!({"containers": [{"name": "agent", "image": image}]});
        assert_eq!(!ignored(&own, &json!({})).is_empty(), is_told, "{image} of podSpec");
    }
}

#[test]
fn every_field_that_an_image_ignores_is_told_and_no_default_is() {
    let fields = |spec: Value, image: &str| -> Vec<String> {
        let settings = json!({"image": image, "agentIdentity": "always",
            "memory": {"userIdentity": false, "requirePrincipal": true, "requireAgentIdentity": true,
                "local": {"limits": true, "scope": true}}});
        ignored(&spec, &settings).into_iter().map(|(path, _)| path).collect()
    };
    let (january, today) = ("axsauze/kaos-agent:v0.1.4-dev", "axsauze/kaos-agent:0.8.4");
    let all = json!({"config": {"systemPrompt": "p", "toolCallMode": "native",
        "agenticLoop": {"enableTools": true, "enableDelegation": true},
        "autonomous": {"goal": "g", "intervalSeconds": 1, "maxIterRuntimeSeconds": 1},
        "taskConfig": {"maxIterations": 1, "maxRuntimeSeconds": 1, "maxToolCalls": 1},
        "memory": {"type": "remote", "memoryStore": "notes", "maxReadScope": "agent", "tools": "all", "failureMode": "soft",
            "clientParams": {"tokenBudget": 9, "rollingSummary": true}}}});
    let memory = |field: &str| format!("spec.config.memory.{field}");
    let wanted: Vec<String> = ["memoryStore", "maxReadScope", "tools", "failureMode", "clientParams.tokenBudget"]
        .map(memory)
        .into_iter()
        .chain(["systemPrompt", "toolCallMode"].map(|field| format!("spec.config.{field}")))
        .chain(["goal", "intervalSeconds", "maxIterRuntimeSeconds"].map(|it| format!("spec.config.autonomous.{it}")))
        .collect();
    let never: Vec<String> = ["maxIterations", "maxRuntimeSeconds", "maxToolCalls"]
        .map(|it| format!("spec.config.taskConfig.{it}"))
        .into_iter()
        .chain([memory("clientParams.rollingSummary")])
        .collect();
    let sorted = |mut list: Vec<String>| {
        list.sort();
        list
    };
    assert_eq!(sorted(fields(all.clone(), january)), sorted([wanted, never.clone()].concat()));
    let removed = ["enableTools", "enableDelegation"].map(|it| format!("spec.config.agenticLoop.{it}"));
    assert_eq!(sorted(fields(all, today)), sorted([never, removed.into()].concat()));
    let plain = json!({"config": {"description": "d", "toolCallMode": "auto", "reasoningLoopMaxSteps": 3,
        "memory": {"enabled": true, "contextLimit": 5}, "autonomous": {"goal": " "}}});
    assert_eq!(fields(plain, january), [""; 0]);
    let of_users =
        json!({"container": {"env": [{"name": "AUTONOMOUS_GOAL", "value": "g"}, {"name": "MINE", "value": "1"}]}});
    assert_eq!(fields(of_users, january), ["spec.container.env[0]"]);
}

#[test]
fn a_team_can_list_an_image_of_its_own() {
    let settings = json!({"image": "registry.example.com/team/agent:2.1",
        "imageVariables": {"team/agent": "MINE never, AGENT_SYSTEM_PROMPT 3.0", "other/agent": "AUTONOMOUS_GOAL 3.0"}});
    let spec = json!({"config": {"systemPrompt": "p", "autonomous": {"goal": "g"}}});
    let told = ignored(&spec, &settings);
    assert!(told.len() == 1 && told[0].1.ends_with("use 3.0 or newer"), "{told:?}");
    // An entry for KAOS's image replaces the policy's built-in list for this image.
    let kaos = |reads: &str| {
        let settings = json!({"imageVariables": {"axsauze/kaos-agent": reads}});
        ignored(&spec, &settings).into_iter().map(|(path, _)| path).collect::<Vec<_>>()
    };
    assert_eq!(kaos(""), [""; 0]);
    assert_eq!(kaos("AGENT_* 0.9"), ["spec.config.systemPrompt"]);
}
