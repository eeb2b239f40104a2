//! Tests which fields of other objects the policy reads. A change of any other field must not start a pass.
#![allow(clippy::unwrap_used, clippy::panic)]

use kaos_agent::Agent;
use kaos_policy_sdk::types::{Answer, Outcome, Subject};
use kaos_policy_sdk::{Policy, testing};
use serde_json::{Value, json};

fn agent() -> Value {
    json!({
        "apiVersion": "kaos.tools/v1alpha1", "kind": "Agent", "metadata": {"name": "a", "namespace": "n", "uid": "u"},
        "spec": {"modelAPI": "llm", "model": "openai/gpt", "mcpServers": ["echo"], "agentNetwork": {"access": ["b"]}},
    })
}

fn kaos(kind: &str, name: &str, spec: &Value) -> Value {
    let status = json!({
        "endpoint": format!("http://{name}"), "ready": true, "phase": "Ready", "deployment": {"availableReplicas": 1},
    });
    let metadata = json!({"name": name, "namespace": "n", "uid": name});
    json!({"apiVersion": "kaos.tools/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec, "status": status})
}

fn api(models: &[&str]) -> Value {
    kaos("ModelAPI", "llm", &json!({"mode": "Proxy", "proxyConfig": {"models": models}}))
}

fn beside(api: Value) -> Vec<Value> {
    vec![api, kaos("MCPServer", "echo", &json!({})), kaos("Agent", "b", &json!({}))]
}

fn applied(beside: &[Value]) -> Subject {
    testing::subject(&agent()).applied().beside::<Agent>(beside).build()
}

fn ids(subject: &Subject) -> Vec<&str> {
    subject.found.iter().map(|found| found.id.as_str()).collect()
}

const BRIEF: [&str; 3] = ["Agent/b", "MCPServer/echo", "ModelAPI/llm"];

#[test]
fn an_applied_agent_sees_no_label_no_rollout_and_no_other_model() {
    let before = applied(&beside(api(&["openai/gpt"])));
    assert_eq!(ids(&before), BRIEF);
    assert!(testing::plan::<Agent>(&before).is_ok());
    let mut changed = beside(api(&["other", "openai/gpt", "anthropic/*"]));
    for object in &mut changed {
        object["metadata"]["labels"] = json!({"team": "one"});
        object["metadata"]["generation"] = json!(7);
        object["spec"]["replicas"] = json!(3);
        object["status"]["ready"] = json!(false);
        object["status"]["phase"] = json!("Pending");
        object["status"]["deployment"] = json!({"availableReplicas": 2, "replicas": 4});
    }
    assert_eq!(applied(&changed).found, before.found);
}

#[test]
fn an_applied_agent_sees_each_form_of_its_own_model() {
    for models in [&["*"][..], &["openai/*"], &["openai/gpt", "x"]] {
        let subject = applied(&beside(api(models)));
        assert_eq!(ids(&subject), BRIEF, "{models:?}");
        assert!(testing::plan::<Agent>(&subject).is_ok(), "{models:?}");
    }
    let refused = applied(&beside(api(&["openai/other", "open*", "gpt"])));
    assert_eq!(ids(&refused), ["Agent/b", "MCPServer/echo", "ModelAPI/llm", "ModelAPI/llm/all"]);
    let told = format!("{:?}", testing::plan::<Agent>(&refused).unwrap_err());
    assert!(told.contains("(supported: [openai/other open* gpt])"), "{told}");
}

#[test]
fn an_applied_agent_reads_more_of_a_dependency_that_does_not_serve() {
    for (status, message) in [
        (json!({"endpoint": "http://llm", "ready": false, "phase": "Pending"}), "ModelAPI is not ready"),
        (
            json!({"endpoint": "http://llm", "ready": false, "phase": "Failed", "deployment": {"availableReplicas": 1}}),
            "ModelAPI llm has failed; its older pods still serve",
        ),
        (json!({"endpoint": "http://llm", "ready": true, "phase": "Ready"}), "every dependency serves"),
    ] {
        let mut api = api(&["*"]);
        api["status"] = status;
        let subject = applied(&beside(api));
        assert!(ids(&subject).contains(&"ModelAPI/llm/all"));
        let report = Agent::assess(&subject, &testing::observation(Outcome::Applied).build());
        let of_dependencies =
            report.conditions.iter().find(|condition| condition.type_ == "DependenciesReady").unwrap();
        assert_eq!(of_dependencies.message, message);
    }
}

#[test]
fn a_new_agent_sees_whether_its_dependencies_are_ready_and_nothing_besides() {
    let beside = beside(api(&["x", "openai/gpt"]));
    let subject = testing::subject(&agent()).beside::<Agent>(&beside).build();
    assert_eq!(ids(&subject), BRIEF);
    let Answer::Objects(objects) = &subject.found[2].answer else { panic!("no object") };
    let seen: Value = serde_json::from_str(&objects[0]).unwrap();
    assert_eq!((&seen["status"]["ready"], &seen["status"]["phase"]), (&json!(true), &Value::Null));
    assert_eq!(seen["spec"], json!({"mode": "Proxy", "proxyConfig": {"models": ["x", "openai/gpt"]}}));
    let Answer::Objects(peers) = &subject.found[0].answer else { panic!("no object") };
    let peer: Value = serde_json::from_str(&peers[0]).unwrap();
    assert_eq!(peer["status"], json!({"endpoint": "http://b"}));
}
