//! Tests Agents whose dependencies are missing or not ready, or that a user creates again.

use std::time::Duration;

use kaos_cluster::PodFate;
use kaos_tests::harness::read::{name, variable};
use kaos_tests::harness::samples::{agent, mcp_server, memory_store, model_api};
use kaos_tests::harness::{Scenario, World, condition, is_ready, is_true, play, reason};
use serde_json::{Value, json};

use crate::support::{STORE, external_store};

/// Creates an Agent with a ModelAPI, an MCPServer and a MemoryStore. Waits until all four objects are ready.
async fn with_dependencies(w: &World) -> [Value; 3] {
    let dependencies = [model_api("llm"), mcp_server("tools"), external_store("notes")];
    w.apply_all(&dependencies).await;
    let links = json!({"mcpServers": ["tools"], "config": {"memory": {"memoryStore": "notes"}}});
    w.apply(&agent("a", "llm", &links)).await;
    w.until_ready("Agent/a").await;
    w.quiet().await;
    dependencies
}

#[test]
fn a_flapping_store_rolls_no_agent_and_changes_one_condition() {
    const AGENTS: usize = 50;
    const FOLLOWED: usize = 5;
    play(Scenario::embedded("the test decides the fate of pods"), async |w| {
        w.apply_all(&[model_api("llm"), memory_store("notes", "llm")]).await;
        w.until_ready(STORE).await;
        let names: Vec<String> = (0..AGENTS).map(|at| format!("a-{at}")).collect();
        for name in &names {
            w.apply(&agent(name, "llm", &json!({"config": {"memory": {"memoryStore": "notes"}}}))).await;
        }
        let at: Vec<String> = names.iter().map(|name| format!("Agent/{name}")).collect();
        let all: Vec<&str> = at.iter().map(String::as_str).collect();
        w.until_all("all objects are ready", &all, |all| all.iter().all(is_ready)).await;
        w.quiet().await;
        let others = |agent: &Value| {
            let mut status = agent["status"].clone();
            status["conditions"].as_array_mut().unwrap().retain(|it| it["type"] != "MemoryDegraded");
            status
        };
        let mut before = Vec::new();
        for agent in &at {
            before.push(others(&w.look(agent).await));
        }
        // Record the states of only some Agents, because recording all of them would take most of the test's time.
        let mut histories = Vec::new();
        for agent in at.iter().step_by(FOLLOWED) {
            histories.push(w.history(agent).await);
        }
        // Make the pods ready or not ready once per second, for twenty seconds.
        for _ in 0..10 {
            w.pods_of("memorystore-notes", PodFate::NotReady);
            w.pass_time(Duration::from_secs(1)).await;
            w.pods_of("memorystore-notes", PodFate::ReadyAfter(Duration::ZERO));
            w.pass_time(Duration::from_secs(1)).await;
        }
        w.until_ready(STORE).await;
        let healthy = |it: &Value| reason(it, "MemoryDegraded") == "MemoryHealthy";
        w.until_all("all Agents are healthy", &all, |all| all.iter().all(healthy)).await;
        w.quiet().await;
        for (before, history) in before.iter().step_by(FOLLOWED).zip(&histories) {
            let states = history.states();
            let has_flapped = |it: &Value| reason(it, "MemoryDegraded") == "MemoryStoreNotReady";
            assert!(states.iter().any(has_flapped), "no recorded state shows the unready store");
            for state in states {
                assert_eq!(others(&state), *before);
            }
        }
        for ((name, at), before) in names.iter().zip(&at).zip(&before) {
            assert_eq!(others(&w.look(at).await), *before, "{name}");
            assert_eq!(w.rollouts(&format!("agent-{name}")).await, 1, "{name}");
        }
    });
}

#[test]
fn a_dependency_that_is_deleted_and_created_again_rolls_no_agent() {
    play(Scenario::default(), async |w| {
        let dependencies = with_dependencies(w).await;
        let before = w.look("Deployment/agent-a").await;
        for dependency in &dependencies {
            let at = format!("{}/{}", dependency["kind"].as_str().unwrap(), name(dependency));
            w.delete(&at).await;
            w.until_gone(&at).await;
            let missing = format!("{} not found", at.replace('/', " "));
            let is_told = |it: &Value| {
                let told = ["DependenciesReady", "MemoryDegraded"].map(|of| condition(it, of)["message"].to_string());
                told.concat().contains(&missing)
            };
            let waiting = w.until("the Agent names the missing dependency", "Agent/a", is_told).await;
            assert!(is_ready(&waiting), "its pods serve: {waiting:#}");
            w.quiet().await;
            w.apply(dependency).await;
            w.until_ready(&at).await;
            let serves = |it: &Value| {
                is_true(it, "DependenciesReady")
                    && is_true(it, "Applied")
                    && reason(it, "MemoryDegraded") == "MemoryHealthy"
            };
            w.until("the Agent has all dependencies", "Agent/a", serves).await;
            w.quiet().await;
            let after = w.look("Deployment/agent-a").await;
            assert_eq!(after["spec"]["template"], before["spec"]["template"], "{at}");
            assert_eq!(w.rollouts("agent-a").await, 1, "{at}");
        }
    });
}

#[test]
fn a_store_that_comes_back_with_another_scope_rolls_its_agents_once() {
    play(Scenario::default(), async |w| {
        let [.., mut store] = with_dependencies(w).await;
        w.delete(STORE).await;
        w.until_gone(STORE).await;
        let missing =
            |it: &Value| reason(it, "MemoryDegraded") == "MemoryStoreNotReady" && reason(it, "Applied") == "Gated";
        w.until("the Agent names the missing store", "Agent/a", missing).await;
        store["spec"]["maxReadScope"] = json!("session");
        w.apply(&store).await;
        w.until_ready(STORE).await;
        let has_scope = |it: &Value| variable(it, "MEMORY_MAX_READ_SCOPE") == "session";
        w.until("the pods have the new scope", "Deployment/agent-a", has_scope).await;
        w.until_ready("Agent/a").await;
        w.quiet().await;
        assert_eq!(w.rollouts("agent-a").await, 2);
    });
}

#[test]
fn an_agent_whose_store_is_missing_gets_a_deleted_deployment_back() {
    play(Scenario::default(), async |w| {
        with_dependencies(w).await;
        w.delete(STORE).await;
        w.until_gone(STORE).await;
        w.until("the plan gate holds back the apply", "Agent/a", |it| reason(it, "Applied") == "Gated").await;
        w.delete("Deployment/agent-a").await;
        w.until("the operator has created the Deployment again", "Deployment/agent-a", |it| {
            it["metadata"]["deletionTimestamp"].is_null() && it.is_object()
        })
        .await;
        w.until_ready("Agent/a").await;
    });
}

#[test]
fn an_agent_waits_for_its_store_and_reports_a_too_wide_read_scope() {
    play(Scenario::default(), async |w| {
        let of_store = |more: Value| {
            let mut memory = json!({"memoryStore": "facts"});
            memory.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            json!({"config": {"memory": memory}})
        };
        w.apply_all(&[model_api("llm"), agent("a", "llm", &of_store(json!({})))]).await;
        let waits = |it: &Value| it["status"]["message"] == "MemoryStore facts not found";
        let waiting = w.until("the Agent waits", "Agent/a", waits).await;
        assert_eq!(waiting["status"]["phase"], "Waiting");
        w.apply(&external_store("facts")).await;
        let ready = w.until_ready("Agent/a").await;
        assert_eq!(ready["status"]["linkedResources"]["memorystore"], "facts");
        let deployment = w.look("Deployment/agent-a").await;
        let endpoint = format!("http://memorystore-facts.{}.svc.cluster.local:8080", w.namespace);
        assert_eq!(variable(&deployment, "MEMORY_STORE_ENDPOINT"), endpoint.as_str());
        assert_eq!(variable(&deployment, "AGENT_IDENTITY"), format!("kaos://agent/{}/a", w.namespace).as_str());
        w.apply(&agent("b", "llm", &of_store(json!({"maxReadScope": "user"})))).await;
        let refused = w
            .until("Agent/b has the reason InvalidMemoryReadScope for Ready", "Agent/b", |it| {
                reason(it, "Ready") == "InvalidMemoryReadScope"
            })
            .await;
        assert_eq!(
            (&refused["status"]["phase"], reason(&refused, "Accepted").as_str()),
            (&json!("Failed"), "InvalidSpec")
        );
    });
}
