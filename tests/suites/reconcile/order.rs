//! A12, B9: the order in which users apply objects does not change the result.

use std::collections::BTreeMap;
use std::time::Duration;

use kaos_cluster::PodFate;
use kaos_tests::harness::samples::{agent, mcp_server, model_api};
use kaos_tests::harness::{Scenario, World, is_ready, play};
use kaos_tests::normalize;
use serde_json::{Value, json};

const ALL: [&str; 4] = ["ModelAPI/llm", "MCPServer/echo", "Agent/worker", "Agent/boss"];
const DEPLOYMENTS: [&str; 4] = ["modelapi-llm", "mcpserver-echo", "agent-worker", "agent-boss"];

fn objects() -> [Value; 4] {
    [
        model_api("llm"),
        mcp_server("echo"),
        agent("worker", "llm", &json!({})),
        agent("boss", "llm", &json!({"mcpServers": ["echo"], "agentNetwork": {"access": ["worker"]}})),
    ]
}

/// Returns all permutations of four indices.
fn permutations() -> Vec<[usize; 4]> {
    let mut all = Vec::new();
    for a in 0..4 {
        for b in (0..4).filter(|b| *b != a) {
            for c in (0..4).filter(|c| *c != a && *c != b) {
                all.push([a, b, c, 6 - a - b - c]);
            }
        }
    }
    all
}

/// Returns the children and the statuses, without values that differ between runs.
async fn end(w: &World) -> BTreeMap<String, Value> {
    w.until_all("everything is ready", &ALL, |all| all.iter().all(is_ready)).await;
    w.quiet().await;
    let mut end = BTreeMap::new();
    for kind in ["Deployment", "Service", "ConfigMap", "Secret", "ServiceAccount"] {
        for child in w.list(kind).await {
            let name = child["metadata"]["name"].clone();
            let mut child = normalize::stripped(child);
            child["metadata"].as_object_mut().unwrap().remove("annotations");
            end.insert(format!("{kind}/{name}"), child);
        }
    }
    for at in ALL {
        let mut status = w.look(at).await["status"].take();
        for condition in status["conditions"].as_array_mut().unwrap() {
            condition.as_object_mut().unwrap().remove("lastTransitionTime");
        }
        // Remove the field `deployment`, because it contains names of ReplicaSets, which differ between runs.
        status.as_object_mut().unwrap().remove("deployment");
        end.insert(at.to_owned(), status);
    }
    end
}

fn play_orders(apply: &impl AsyncFn(&World, &[Value; 4], [usize; 4])) {
    let mut first: Option<BTreeMap<String, Value>> = None;
    for order in permutations() {
        play(Scenario::embedded("24 clusters are cheaper than 24 namespaces"), async |w| {
            w.pods(PodFate::ReadyAfter(Duration::from_secs(3)));
            apply(w, &objects(), order).await;
            let end = end(w).await;
            if let Some(first) = &first {
                for (name, value) in first {
                    assert_eq!(end.get(name), Some(value), "{name} after {order:?}");
                }
                assert_eq!(end.len(), first.len(), "after {order:?}");
            } else {
                first = Some(end);
            }
        });
    }
}

#[test]
fn a12_every_order_of_applying_ends_the_same_with_one_rollout_each() {
    play_orders(&async |w, objects, order| {
        for at in order {
            w.apply(&objects[at]).await;
        }
        w.until_all("everything is ready", &ALL, |all| all.iter().all(is_ready)).await;
        for deployment in DEPLOYMENTS {
            assert_eq!(w.rollouts(deployment).await, 1, "{deployment} after {order:?}");
        }
    });
}

#[test]
fn a12_every_order_with_pauses_ends_the_same() {
    play_orders(&async |w, objects, order| {
        for at in order {
            w.apply(&objects[at]).await;
            w.pass_time(Duration::from_secs(20)).await;
        }
    });
}

#[test]
fn b9_one_apply_of_all_objects_gives_each_deployment_one_replica_set() {
    play(Scenario::default(), async |w| {
        if w.try_embedded().is_some() {
            // Let pods become ready after a second, like pods that start fast on a real cluster.
            w.pods(PodFate::ReadyAfter(Duration::from_secs(1)));
        }
        let mut objects = objects();
        objects.reverse();
        w.apply_all(&objects).await;
        w.until_all("everything is ready", &ALL, |all| all.iter().all(is_ready)).await;
        w.quiet().await;
        for deployment in DEPLOYMENTS {
            let sets = w.owned(&format!("Deployment/{deployment}"), "ReplicaSet").await;
            let templates: Vec<_> = sets.iter().map(|set| &set["spec"]["template"]).collect();
            let why = w.try_embedded().map(|cluster| cluster.journal().entries()).unwrap_or_default();
            let why: Vec<String> = why.iter().map(ToString::to_string).collect();
            assert_eq!(templates.len(), 1, "{deployment}: {templates:#?}\n{}", why.join("\n"));
        }
    });
}

#[test]
fn b9_agents_created_together_for_a_ready_model_get_one_replica_set_each() {
    let [model, tools, worker, boss] = objects();
    // The Agents `partner` and `worker` refer to each other.
    let partner = agent("partner", "llm", &json!({"agentNetwork": {"access": ["worker", "boss"]}}));
    let mut worker = worker;
    worker["spec"]["agentNetwork"] = json!({"access": ["partner"]});
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        let agents = [&boss, &worker, &partner];
        play(Scenario::embedded("the test acts between two requests of the operator"), async |w| {
            w.apply_all(&[model.clone(), tools.clone()]).await;
            w.until_all("the objects are ready", &["ModelAPI/llm", "MCPServer/echo"], |all| all.iter().all(is_ready))
                .await;
            for at in order {
                w.apply(agents[at]).await;
                w.pass_time(Duration::from_millis(300)).await;
            }
            let all = ["Agent/boss", "Agent/worker", "Agent/partner"];
            w.until_all("all objects are ready", &all, |all| all.iter().all(is_ready)).await;
            w.quiet().await;
            for deployment in ["agent-boss", "agent-worker", "agent-partner"] {
                assert_eq!(w.rollouts(deployment).await, 1, "{deployment} after {order:?}");
            }
        });
    }
}

#[test]
fn b9_an_agent_with_a_missing_peer_starts_after_a_short_wait() {
    play(Scenario::embedded("the test simulates time"), async |w| {
        w.apply(&model_api("llm")).await;
        w.until_ready("ModelAPI/llm").await;
        w.apply(&agent("boss", "llm", &json!({"agentNetwork": {"access": ["nobody"]}}))).await;
        w.pass_time(Duration::from_secs(1)).await;
        assert!(w.look("Deployment/agent-boss").await.is_null());
        let boss = w.look("Agent/boss").await;
        assert_eq!(kaos_tests::harness::reason(&boss, "Applied"), "Gated");
        w.pass_time(Duration::from_secs(2)).await;
        assert!(!w.look("Deployment/agent-boss").await.is_null());
        w.until_ready("Agent/boss").await;
        // Create the missing Agent. Another Agent names this Agent as a peer, and the pods of that other Agent must
        // keep running.
        w.apply(&agent("nobody", "llm", &json!({}))).await;
        w.until_all("both objects are ready", &["Agent/boss", "Agent/nobody"], |all| all.iter().all(is_ready)).await;
        w.quiet().await;
        assert_eq!(w.rollouts("agent-boss").await, 2);
    });
}
