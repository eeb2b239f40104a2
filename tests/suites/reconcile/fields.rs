//! A16: if a needed object changes, the operator makes passes only over those objects for which a policy reads the
//! changed field.

use kaos_cluster::PodFate;
use kaos_tests::harness::read::{variable, version};
use kaos_tests::harness::samples::{agent, mcp_server, memory_store, model_api_for};
use kaos_tests::harness::{Scenario, World, is_ready, play};
use serde_json::{Value, json};
use std::time::Duration;

/// Returns the number of passes over objects of a kind so far.
fn passes(w: &World, kind: &str) -> f64 {
    w.counted("kaos_operator_passes_total", &[&format!("kind=\"{kind}\"")])
}

/// Creates settled Agents on one ModelAPI.
async fn settled_agents(w: &World, count: usize) {
    w.apply(&model_api_for("llm", &["gpt-4o"])).await;
    w.apply(&mcp_server("echo")).await;
    for at in 0..count {
        w.apply(&agent(&format!("a-{at}"), "llm", &json!({"mcpServers": ["echo"]}))).await;
    }
    let all_ready = async || w.list("Agent").await.iter().filter(|agent| is_ready(agent)).count() == count;
    w.until_true("all Agents are ready", all_ready).await;
    w.quiet().await;
}

/// Returns the resource versions of the Agents and of their Deployments.
async fn versions(w: &World) -> Vec<String> {
    let mut all: Vec<Value> = w.list("Agent").await;
    all.extend(w.list("Deployment").await);
    let of_agents =
        all.iter().filter(|object| object["metadata"]["name"].as_str().is_some_and(|name| name.contains("a-")));
    of_agents.map(|object| version(object).to_owned()).collect()
}

/// Changes labels, annotations, models and pods of objects that Agents need, in a way that has no effect on any Agent.
async fn change_without_concern(w: &World) {
    let told = json!({"metadata": {"labels": {"team": "one"}, "annotations": {"note": "hello"}}});
    for at in ["ModelAPI/llm", "MCPServer/echo"] {
        w.patch(at, &told).await;
    }
    w.quiet().await;
    w.apply(&model_api_for("llm", &["tiny", "gpt-4o"])).await;
    w.until("the new pods of the ModelAPI serve", "ModelAPI/llm", |api| {
        is_ready(api) && api["status"]["observedGeneration"] == api["metadata"]["generation"]
    })
    .await;
    w.quiet().await;
    assert_eq!(w.rollouts("modelapi-llm").await, 2);
}

#[test]
fn a16_a_label_or_another_model_of_a_model_api_begins_no_pass_over_its_agents() {
    play(Scenario::default(), async |w| {
        settled_agents(w, 3).await;
        let (before, of_api, written) = (passes(w, "Agent"), passes(w, "ModelAPI"), versions(w).await);
        change_without_concern(w).await;
        assert_eq!(passes(w, "Agent") - before, 0.0, "passes over Agents");
        assert!(passes(w, "ModelAPI") > of_api, "the ModelAPI had its own passes");
        assert_eq!(versions(w).await, written);
    });
}

#[test]
fn a16_a_changed_address_begins_a_pass_over_all_agents() {
    play(Scenario::default(), async |w| {
        settled_agents(w, 3).await;
        let before = passes(w, "Agent");
        let address = |deployment: &Value| variable(deployment, "MODEL_API_URL");
        let old = address(&w.look("Deployment/agent-a-0").await);
        let mut hosted = model_api_for("llm", &[]);
        hosted["spec"] = json!({"mode": "Hosted", "hostedConfig": {"model": "gpt-4o"}});
        w.apply(&hosted).await;
        for at in 0..3 {
            let at = format!("Deployment/agent-a-{at}");
            w.until("the Agent has the new address", &at, |deployment| address(deployment) != old).await;
        }
        assert!(passes(w, "Agent") - before >= 3.0);
    });
}

#[test]
fn a16_a_model_that_is_no_longer_offered_is_reported_with_the_offered_ones() {
    play(Scenario::default(), async |w| {
        settled_agents(w, 1).await;
        w.apply(&model_api_for("llm", &["tiny"])).await;
        let refused = |part: &'static str| {
            move |agent: &Value| agent["status"]["message"].as_str().is_some_and(|message| message.contains(part))
        };
        w.until("the Agent is refused", "Agent/a-0", refused("(supported: [tiny])")).await;
        w.apply(&model_api_for("llm", &["tiny", "small"])).await;
        w.until("the refusal names all offered models", "Agent/a-0", refused("(supported: [tiny small])")).await;
        w.apply(&model_api_for("llm", &["tiny", "gpt-4o"])).await;
        w.until_ready("Agent/a-0").await;
    });
}

#[test]
fn a16_another_model_begins_no_pass_over_a_memory_store() {
    play(Scenario::default(), async |w| {
        let mut store = memory_store("notes", "llm");
        let secret = json!({"name": "pg", "key": "dsn", "optional": true});
        store["spec"]["storage"] = json!({"type": "external", "external": {"connectionSecretRef": secret}});
        w.apply_all(&[model_api_for("llm", &["small", "vectors"]), store]).await;
        w.until_ready("MemoryStore/notes").await;
        w.quiet().await;
        let before = passes(w, "MemoryStore");
        w.apply(&model_api_for("llm", &["vectors", "other", "small"])).await;
        w.until_ready("ModelAPI/llm").await;
        w.quiet().await;
        assert_eq!(passes(w, "MemoryStore") - before, 0.0);
    });
}

#[test]
fn a16_a_label_or_another_model_of_a_model_api_of_many_agents_begins_no_pass_over_them() {
    play(Scenario::embedded("the test counts passes, and decides the fate of pods"), async |w| {
        settled_agents(w, 200).await;
        w.pods_of("modelapi-llm", PodFate::ReadyAfter(Duration::from_secs(20)));
        let before = passes(w, "Agent");
        w.forget_requests();
        change_without_concern(w).await;
        assert_eq!(passes(w, "Agent") - before, 0.0, "passes over Agents");
        let writes = w.writes_by_type();
        assert!(!writes.contains_key("agents/status"), "{writes:?}");
        assert_eq!(writes["deployments"], 1, "only the Deployment of the ModelAPI may be written: {writes:?}");
    });
}
