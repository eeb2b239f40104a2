//! Checks that eight samples, which resemble the samples of KAOS 0.8.4, become ready. An object becomes ready when the
//! probes of real processes pass.
//!
//! The recorded cases contain samples 1 to 4. The folder `tests/runtimes/samples` contains samples 5 to 8, written from
//! a description of KAOS's samples. The programs of three images are in no package: Ollama (samples 1, 2 and 6), and
//! the MCP runtimes `kubernetes` (sample 6) and `python-string` (samples 1 to 6). Replacements in
//! `tests/runtimes/images` run instead. No sample can reach a provider of models, so only the samples with Ollama or
//! with mock responses answer a chat.

use kaos_tests::case;
use kaos_tests::harness::read::{condition, name, text};
use kaos_tests::harness::{World, is_ready, samples};
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::images;

const SAMPLES: [&str; 8] = [
    "1-simple",
    "2-multi",
    "3-hierarchy",
    "4-dev",
    "5-proxy-external-api",
    "6-autonomous-monitor",
    "7-memory-agent",
    "8-authorization-walkthrough",
];

/// Returns the objects of a sample, and removes their namespaces.
fn objects(sample: &str) -> Vec<Value> {
    let file = images::of_tests().join(format!("samples/{sample}.yaml"));
    if file.exists() {
        return case::documents(&file).unwrap();
    }
    let recorded = case::golden().join(format!("cases/agent-sample-{sample}/input.yaml"));
    let mut objects = case::documents(&recorded).unwrap();
    for object in &mut objects {
        object["metadata"].as_object_mut().unwrap().remove("namespace");
    }
    objects
}

/// Returns whether the operator runs pods for an object.
fn has_pods(object: &Value) -> bool {
    ["Agent", "ModelAPI", "MCPServer", "MemoryStore"].iter().any(|kind| object["kind"] == *kind)
}

/// Sends a chat to an Agent. Returns the answer.
async fn chat(cluster: &Cluster, world: &World, agent: &str) -> String {
    let body = json!({"model": agent, "messages": [{"role": "user", "content": "hello"}]});
    let pod = cluster.pod(world, &format!("agent-{agent}")).await;
    let answer = pod.ask("/v1/chat/completions", &[], Some(&body)).unwrap().json().unwrap();
    text(&answer["choices"][0]["message"]["content"]).to_owned()
}

/// Applies a sample, and waits until all its objects are ready. The agent card of each Agent must name the Agent and
/// its tools.
pub(crate) async fn run(cluster: &Cluster, sample: &str) -> World {
    let world = cluster.world(&format!("sample-{}", &sample[..1])).await;
    if sample == "3-hierarchy" {
        world.apply(&samples::secret("nebius-secrets", &json!({"api-key": "a-key"}))).await;
    }
    let objects = objects(sample);
    world.apply_all(&objects).await;
    let with_pods: Vec<&Value> = objects.iter().filter(|object| has_pods(object)).collect();
    let keys: Vec<String> = with_pods.iter().map(|it| format!("{}/{}", text(&it["kind"]), name(it))).collect();
    cluster.until_ready(&world, &keys).await;
    assert_eq!(world.list("Deployment").await.len(), with_pods.len(), "{sample}");
    for agent in with_pods.iter().filter(|object| object["kind"] == "Agent") {
        let pod = cluster.pod(&world, &format!("agent-{}", name(agent))).await;
        let card = pod.ask("/.well-known/agent.json", &[], None).unwrap().json().unwrap();
        assert_eq!(card["name"], agent["metadata"]["name"], "{sample}");
        let skills = card["skills"].as_array().unwrap();
        for server in agent["spec"]["mcpServers"].as_array().into_iter().flatten() {
            let tools = world.look(&format!("MCPServer/{}", text(server))).await;
            for tool in tools["status"]["availableTools"].as_array().into_iter().flatten() {
                assert!(skills.iter().any(|skill| skill["name"] == *tool), "{sample}: {tool} is not in {card}");
            }
        }
    }
    world
}

#[tokio::test]
async fn an_agent_becomes_ready_only_when_its_runtime_runs() {
    let cluster = Cluster::shared();
    let world = cluster.world("ending").await;
    let (model, agent) = (samples::model_api("llm"), samples::agent("a", "llm", &json!({})));
    let mut wrong = agent.clone();
    // Set a wrong value: the runtime reads this variable at its start, and ends, because a scope with the name
    // `everything` does not exist.
    wrong["spec"]["container"] = json!({"env": [{"name": "MEMORY_MAX_READ_SCOPE", "value": "everything"}]});
    world.apply_all(&[model, wrong]).await;
    cluster.until_ready(&world, &["ModelAPI/llm".to_owned()]).await;
    let has_ended = |pod: &Value| {
        let is_own = text(&pod["metadata"]["name"]).starts_with("agent-a-");
        is_own && pod["status"]["phase"] == "Failed" && text(&pod["status"]["message"]).contains("everything")
    };
    world.until_true("the runtime ends", async || world.list("Pod").await.iter().any(has_ended)).await;
    assert!(!is_ready(&world.look("Agent/a").await));
    world.apply(&agent).await;
    cluster.until_ready(&world, &["Agent/a".to_owned()]).await;
    world.delete(&format!("Namespace/{}", world.namespace)).await;
}

#[tokio::test]
async fn the_eight_samples_become_ready_with_real_processes() {
    let cluster = Cluster::shared();
    for sample in SAMPLES {
        let world = run(cluster, sample).await;
        match sample {
            // This answer also shows that the ModelAPI's init container has pulled the model: without the model, the
            // replacement of Ollama does not answer.
            "1-simple" => assert_eq!(chat(cluster, &world, "simple-agent").await, "the answer of the model"),
            "7-memory-agent" => {
                let agents = ["knows-users", "knows-the-session", "knows-its-own"];
                for (agent, scope) in agents.into_iter().zip(["user", "session", "agent"]) {
                    let pod = cluster.pod(&world, &format!("agent-{agent}")).await;
                    assert_eq!(pod.variable("MEMORY_MAX_READ_SCOPE"), Some(scope));
                    let agent = world.look(&format!("Agent/{agent}")).await;
                    assert_eq!(condition(&agent, "MemoryDegraded")["status"], "False");
                }
            }
            "8-authorization-walkthrough" => {
                assert_eq!(chat(cluster, &world, "asked").await, "You have a grant.");
                // The AccessGrant must report that it has no effect, because this cluster has no decision point.
                let grant = world.look("AccessGrant/ada").await;
                assert_eq!(condition(&grant, "Enforced")["reason"], "AuthorizationDisabled");
            }
            _ => {}
        }
        world.delete(&format!("Namespace/{}", world.namespace)).await;
    }
}
