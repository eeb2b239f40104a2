//! Tests Agents with memory in a MemoryStore: their gates, variables and refusals.

#![allow(clippy::panic, clippy::unwrap_used)] // helpers of tests; a failure must end the test

use kaos_agent::{Agent, Settings};
use kaos_policy_sdk::types::{Answer, Condition, Outcome, Plan, Refusal, Subject, Truth};
use kaos_policy_sdk::{Policy, testing};
use kaos_workload::schema::{leaves, with};
use serde_json::{Value, json};

const ENDPOINT: &str = "http://memorystore-s.ns.svc.cluster.local:8080";

fn settings(changed: &[(&str, Value)]) -> Value {
    let schema: Value = serde_json::from_str(&Settings::schema_text()).unwrap();
    let defaults = leaves(&schema).into_iter().map(|(path, leaf)| (path, leaf["default"].clone()));
    let changed = changed.iter().map(|(path, value)| ((*path).to_owned(), value.clone()));
    defaults.chain(changed).fold(json!({}), |settings, (path, value)| with(&settings, &path, value))
}

fn agent(memory: &Value) -> Value {
    let spec = json!({"modelAPI": "llm", "model": "m", "config": {"memory": memory}});
    json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "Agent", "metadata": {"name": "a", "namespace": "ns"}, "spec": spec})
}

fn store(scope: &str, status: &Value) -> Value {
    json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "MemoryStore", "metadata": {"name": "s", "namespace": "ns"},
           "spec": {"maxReadScope": scope}, "status": status})
}

fn up() -> Value {
    json!({"ready": true, "endpoint": ENDPOINT})
}

fn seen_with(agent: &Value, store: Option<Value>, changed: &[(&str, Value)]) -> Subject {
    let api = json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "ModelAPI", "metadata": {"name": "llm", "namespace": "ns"},
        "spec": {"mode": "Proxy", "proxyConfig": {"models": ["*"]}}, "status": {"ready": true, "endpoint": "http://llm"}});
    let beside: Vec<Value> = [Some(api), store].into_iter().flatten().collect();
    testing::subject(agent).settings(&settings(changed)).beside::<Agent>(&beside).build()
}

fn seen(agent: &Value, store: Option<Value>) -> Subject {
    seen_with(agent, store, &[])
}

fn plan(subject: &Subject) -> Plan {
    testing::plan::<Agent>(subject).unwrap_or_else(|refused| panic!("{refused:?}"))
}

fn value<'a>(plan: &'a Plan, name: &str) -> Option<&'a str> {
    testing::env_value(&plan.env, "agent", name)
}

fn condition(subject: &Subject, outcome: Outcome, of: &str) -> Option<Condition> {
    let report = Agent::assess(subject, &testing::observation(outcome).build());
    report.conditions.into_iter().find(|condition| condition.type_ == of)
}

#[test]
fn an_agent_gets_address_scope_and_identity_from_a_ready_store() {
    let subject = seen(&agent(&json!({"memoryStore": "s"})), Some(store("agent", &up())));
    let plan = plan(&subject);
    assert!(plan.gates.is_empty());
    for (name, wanted) in [
        ("MEMORY_TYPE", "remote"),
        ("MEMORY_STORE_ENDPOINT", ENDPOINT),
        ("MEMORY_MAX_READ_SCOPE", "agent"),
        ("AGENT_IDENTITY", "kaos://agent/ns/a"),
    ] {
        assert_eq!(value(&plan, name), Some(wanted), "{name}");
    }
    let healthy = condition(&subject, Outcome::Applied, "MemoryDegraded").unwrap();
    assert_eq!((healthy.status, healthy.reason.as_str()), (Truth::No, "MemoryHealthy"));
    assert_eq!(healthy.message, "MemoryStore s is ready");
    let report = Agent::assess(&subject, &testing::observation(Outcome::Applied).build());
    let fields: Value = serde_json::from_str(&report.fields).unwrap();
    assert_eq!(fields["linkedResources"], json!({"modelapi": "llm", "memorystore": "s"}));
}

#[test]
fn a_missing_or_unready_store_delays_the_first_apply_and_is_reported_later() {
    for (store, message) in [
        (None, "MemoryStore s not found"),
        (Some(store("agent", &json!({"phase": "Pending"}))), "MemoryStore s is not ready"),
        (Some(store("agent", &json!({"ready": false, "endpoint": ENDPOINT}))), "MemoryStore s is not ready"),
    ] {
        let mut object = agent(&json!({"memoryStore": "s"}));
        let subject = seen(&object, store.clone());
        let planned = plan(&subject);
        assert_eq!(planned.gates.iter().map(|gate| gate.message.as_str()).collect::<Vec<_>>(), [message]);
        let has_address = value(&planned, "MEMORY_STORE_ENDPOINT").is_some();
        assert_eq!(planned.gates_hold, !has_address, "pods that run keep their address");
        let degraded = condition(&subject, Outcome::Applied, "MemoryDegraded").unwrap();
        assert_eq!((degraded.status, degraded.reason.as_str()), (Truth::Yes, "MemoryStoreNotReady"));
        assert_eq!(degraded.message, message);
        object["spec"]["waitForDependencies"] = json!(false);
        let without_waiting = plan(&seen(&object, store));
        assert!(without_waiting.gates.is_empty() && !without_waiting.gates_hold);
    }
}

#[test]
fn the_pods_keep_the_address_while_the_store_is_unready() {
    let manifests = |ready: bool| {
        let status = json!({"ready": ready, "endpoint": ENDPOINT});
        plan(&seen(&agent(&json!({"memoryStore": "s"})), Some(store("agent", &status)))).manifests
    };
    assert_eq!(manifests(true), manifests(false));
    let none = plan(&seen(&agent(&json!({"memoryStore": "s"})), None));
    assert_eq!(value(&none, "MEMORY_STORE_ENDPOINT"), None);
}

#[test]
fn an_impossible_scope_is_refused_and_is_the_reason_in_ready() {
    const NO_USERS: &str =
        "config.memory.maxReadScope references user scope, but cluster security posture has no user identity";
    for (own, most, message) in [
        ("agent", "session", "config.memory.maxReadScope \"agent\" exceeds MemoryStore \"s\" maxReadScope \"session\""),
        ("user", "agent", NO_USERS),
        ("user", "user", NO_USERS),
    ] {
        let object = agent(&json!({"memoryStore": "s", "maxReadScope": own}));
        let subject = seen(&object, Some(store(most, &up())));
        let Err(Refusal::Invalid(wrong)) = testing::plan::<Agent>(&subject) else { panic!("{own} of {most} is taken") };
        assert_eq!(wrong[0].path, "spec.config.memory.maxReadScope");
        assert!(wrong[0].message.starts_with(message), "{}", wrong[0].message);
        let ready = condition(&subject, Outcome::Refused(Refusal::Invalid(wrong)), "Ready").unwrap();
        assert_eq!((ready.status, ready.reason.as_str()), (Truth::No, "InvalidMemoryReadScope"));
        assert!(ready.message.starts_with(message));
    }
    let object = agent(&json!({"memoryStore": "s", "maxReadScope": "user"}));
    let with_users = [("memory.userIdentity", json!(true))];
    let taken = plan(&seen_with(&object, Some(store("user", &up())), &with_users));
    assert_eq!(value(&taken, "MEMORY_MAX_READ_SCOPE"), Some("user"));
}

#[test]
fn an_impossible_scope_of_a_store_is_reported_with_the_store_and_the_field() {
    let object = agent(&json!({"memoryStore": "s"}));
    let subject = seen(&object, Some(store("user", &up())));
    let Err(Refusal::Invalid(wrong)) = testing::plan::<Agent>(&subject) else { panic!("the policy accepts the scope") };
    assert_eq!(wrong[0].path, "spec.config.memory.memoryStore");
    let message = "MemoryStore \"s\" allows user scope, but cluster security posture has no user identity";
    assert!(wrong[0].message.starts_with(message), "{}", wrong[0].message);
    let ready = condition(&subject, Outcome::Refused(Refusal::Invalid(wrong)), "Ready").unwrap();
    assert_eq!(ready.reason, "InvalidMemoryReadScope");
    let narrower = agent(&json!({"memoryStore": "s", "maxReadScope": "agent"}));
    plan(&seen(&narrower, Some(store("user", &up()))));
}

#[test]
fn an_agent_keeps_its_pods_while_its_store_cannot_be_read() {
    let object = agent(&json!({"memoryStore": "s"}));
    let mut subject = seen(&object, Some(store("agent", &up())));
    let of_store = subject.found.iter_mut().find(|found| found.id == "MemoryStore/s").unwrap();
    of_store.answer = Answer::Forbidden("no right to list".to_owned());
    let Err(refusal) = testing::plan::<Agent>(&subject) else { panic!("the Agent has a plan without its store") };
    let Refusal::Waiting(on) = &refusal else { panic!("{refusal:?}") };
    assert_eq!((on.len(), on[0].reason.as_str()), (1, "Forbidden"));
    let message = "MemoryStore s cannot be read: no right to list";
    assert_eq!(on[0].message, message);
    for of in ["MemoryDegraded", "DependenciesReady"] {
        let told = condition(&subject, Outcome::Refused(refusal.clone()), of).unwrap();
        assert!(told.message.contains(message), "{of}: {}", told.message);
    }
}

#[test]
fn an_endpoint_that_the_user_sets_needs_no_store() {
    let mut object = agent(&json!({"memoryStore": "s", "maxReadScope": "user"}));
    object["spec"]["container"] = json!({"env": [{"name": "MEMORY_STORE_ENDPOINT", "value": "http://mine"}]});
    let subject = seen(&object, None);
    let planned = plan(&subject);
    assert!(planned.gates.is_empty());
    assert_eq!(
        (value(&planned, "MEMORY_STORE_ENDPOINT"), value(&planned, "AGENT_IDENTITY")),
        (Some("http://mine"), None)
    );
    let healthy = condition(&subject, Outcome::Applied, "MemoryDegraded").unwrap();
    assert_eq!((healthy.status, healthy.message.as_str()), (Truth::No, "Memory is healthy"));
}

#[test]
fn a_limit_that_a_setting_turns_off_is_told_and_no_default_is() {
    let limits = json!({"type": "local", "contextLimit": 9, "maxSessions": 1000, "maxSessionEvents": 60});
    let told = |memory: &Value, is_on: bool| {
        let off = [("memory.local.limits", json!(is_on))];
        let plan = plan(&seen_with(&agent(memory), Some(store("agent", &up())), &off));
        let notes = plan.notes.into_iter().filter(|note| note.reason == "Unused");
        notes.map(|note| (note.path.unwrap(), note.message)).collect::<Vec<_>>()
    };
    let found = told(&limits, false);
    let paths: Vec<&str> = found.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(paths, ["spec.config.memory.contextLimit", "spec.config.memory.maxSessionEvents"]);
    let message = "contextLimit has no effect, because the setting memory.local.limits is false: set \
                   MEMORY_CONTEXT_LIMIT in spec.container.env, or set the setting to true";
    assert_eq!(found[0].1, message);
    assert_eq!((told(&limits, true), told(&json!({}), false)), (Vec::new(), Vec::new()));
    assert_eq!(told(&json!({"memoryStore": "s", "contextLimit": 9}), false), []);
}

#[test]
fn a_setting_selects_the_agents_that_get_their_identity() {
    let identity = |memory: Option<&str>, setting: &str| {
        let mut object = agent(&json!({}));
        if memory.is_none() {
            object["spec"]["config"] = json!({});
        }
        let changed = [("agentIdentity", json!(setting))];
        value(&plan(&seen_with(&object, None, &changed)), "AGENT_IDENTITY").is_some()
    };
    let local = Some("local");
    assert_eq!([identity(local, "store"), identity(local, "memory"), identity(None, "memory")], [false, true, false]);
    assert!(identity(None, "always"));
    assert_eq!(
        condition(&seen(&agent(&json!({})), None), Outcome::Applied, "MemoryDegraded").unwrap().status,
        Truth::No
    );
}
