//! B: a change causes exactly one rollout of the affected pods, and no rollout of other pods.

use std::time::Duration;

use kaos_cluster::PodFate;
use kaos_tests::gadget::{Edition, gadget};
use kaos_tests::harness::read::{hash, text, variable};
use kaos_tests::harness::requests::Sort;
use kaos_tests::harness::samples::{agent, config_map, mcp_server, model_api, model_api_for, secret};
use kaos_tests::harness::{Scenario, World, condition, is_ready, is_true, play, reason};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::{CHILDREN, image, of_type, web_with};

async fn settled_agent(w: &World, more: &Value) {
    w.apply_all(&[model_api("llm"), mcp_server("echo"), agent("a", "llm", more)]).await;
    w.until_all("all objects are ready", &["ModelAPI/llm", "MCPServer/echo", "Agent/a"], |all| {
        all.iter().all(is_ready)
    })
    .await;
    w.quiet().await;
}

#[test]
fn b1_another_model_api_rolls_the_agent() {
    play(Scenario::default(), async |w| {
        settled_agent(w, &json!({})).await;
        let before = w.look("Deployment/agent-a").await;
        w.apply(&model_api("other")).await;
        w.until_ready("ModelAPI/other").await;
        w.apply(&agent("a", "other", &json!({}))).await;
        w.until("the template has changed", "Deployment/agent-a", |now| hash(now) != hash(&before)).await;
        w.until_ready("Agent/a").await;
        w.quiet().await;
        assert_eq!(w.rollouts("agent-a").await, 2);
    });
}

#[test]
fn b2_a_changed_reference_rolls_only_the_pods_that_use_it() {
    play(Scenario::default(), async |w| {
        w.apply_all(&[
            config_map("one", &json!({"next": "two"})),
            config_map("two", &json!({"value": "old"})),
            gadget("near", &json!({"chain": "one"})),
            gadget("far", &json!({})),
        ])
        .await;
        w.until_all("both objects are ready", &["Gadget/near", "Gadget/far"], |all| all.iter().all(is_ready)).await;
        let far = w.look("Deployment/far").await;
        w.apply(&config_map("two", &json!({"value": "new"}))).await;
        w.until("Deployment/near has the value", "Deployment/near", |now| variable(now, "CHAIN") == "new").await;
        // Wait for the rollout: the Deployment controller makes no rollout for a pod template that changes again
        // immediately.
        w.until_true("the change has rolled the pods", async || w.rollouts("near").await == 2).await;
        w.apply(&config_map("three", &json!({"value": "newest"}))).await;
        w.apply(&config_map("one", &json!({"next": "three"}))).await;
        w.until("Deployment/near follows the chain", "Deployment/near", |now| variable(now, "CHAIN") == "newest").await;
        w.until_true("the second change has rolled the pods, too", async || w.rollouts("near").await == 3).await;
        w.quiet().await;
        assert_eq!((w.rollouts("near").await, w.rollouts("far").await), (3, 1));
        assert_eq!(w.look("Deployment/far").await["metadata"]["resourceVersion"], far["metadata"]["resourceVersion"]);
    });
}

async fn rotate(w: &World) -> usize {
    w.apply_all(&[secret("key", &json!({"token": "old"})), gadget("web", &json!({"token": "key"}))]).await;
    w.until_ready("Gadget/web").await;
    w.quiet().await;
    w.apply(&secret("key", &json!({"token": "new"}))).await;
    w.pass_time(Duration::from_secs(5)).await;
    w.quiet().await;
    w.rollouts("web").await
}

#[test]
fn b3_a_rotated_secret_rolls_pods_if_secrets_are_watched() {
    play(Scenario::default().tuned(|options| options.secrets = true), async |w| assert_eq!(rotate(w).await, 2));
}

#[test]
fn b3_a_rotated_secret_rolls_nothing_if_secrets_are_not_watched() {
    play(Scenario::default().tuned(|options| options.secrets = false), async |w| assert_eq!(rotate(w).await, 1));
}

#[test]
fn b4_a_change_of_an_mcp_server_reaches_the_agents_that_use_it() {
    play(Scenario::embedded("the test decides the fate of pods"), async |w| {
        settled_agent(w, &json!({"mcpServers": ["echo"]})).await;
        let before = w.look("Deployment/agent-a").await;
        w.pods_of("mcpserver-echo", PodFate::NotReady);
        w.until("the Agent reports the unready MCPServer", "Agent/a", |a| {
            condition(a, "DependenciesReady")["status"] == "False"
        })
        .await;
        w.pods_of("mcpserver-echo", PodFate::ReadyAfter(Duration::ZERO));
        w.until("the Agent reports the ready MCPServer", "Agent/a", |a| {
            condition(a, "DependenciesReady")["status"] == "True"
        })
        .await;
        w.delete("MCPServer/echo").await;
        w.until("the Agent reports the deleted MCPServer", "Agent/a", |a| reason(a, "Resolved") == "NotFound").await;
        w.apply(&mcp_server("echo")).await;
        w.until_ready("Agent/a").await;
        w.until("the Agent has its MCPServer again", "Agent/a", |a| {
            a["status"]["linkedResources"]["mcpserver/echo"] == "echo"
        })
        .await;
        w.quiet().await;
        assert_eq!(hash(&w.look("Deployment/agent-a").await), hash(&before));
    });
}

#[test]
fn b5_an_edit_without_effect_rolls_nothing() {
    play(Scenario::default(), async |w| {
        settled_agent(w, &json!({"config": {"instructions": "x", "env": [{"name": "A", "value": "1"}]}})).await;
        let before = w.look("Deployment/agent-a").await;
        w.patch("Agent/a", &json!({"metadata": {"labels": {"team": "x"}, "annotations": {"note": "y"}}})).await;
        w.patch("ModelAPI/llm", &json!({"metadata": {"annotations": {"note": "y"}}})).await;
        // Apply an equal spec with another order of keys.
        let same = json!({"config": {"env": [{"value": "1", "name": "A"}], "instructions": "x"}});
        w.apply(&agent("a", "llm", &same)).await;
        w.pass_time(Duration::from_secs(5)).await;
        w.quiet().await;
        let after = w.look("Deployment/agent-a").await;
        assert_eq!(
            (hash(&after), &after["metadata"]["generation"]),
            (hash(&before), &before["metadata"]["generation"])
        );
        assert_eq!(w.rollouts("agent-a").await, 1);
    });
}

#[test]
fn b6_a_config_map_is_written_before_the_template_that_uses_it() {
    play(Scenario::embedded("the test checks the order of requests"), async |w| {
        w.apply(&web_with(&json!({}))).await;
        w.until_ready("Gadget/web").await;
        w.forget_requests();
        w.apply(&web_with(&json!({"config": {"a": "2"}}))).await;
        w.until("the pods roll", "Deployment/web", |now| now["metadata"]["generation"] == 2).await;
        let writes = w.requests(Sort::Write);
        let at = |plural: &str| of_type(&writes, plural).first().map(|entry| entry.revision);
        assert!(at("configmaps").unwrap() < at("deployments").unwrap(), "{writes:#?}");
        assert_eq!(w.rollouts("web").await, 2);
    });
}

#[test]
fn b7_a_change_of_a_peer_reaches_the_agents_that_call_it() {
    play(Scenario::default(), async |w| {
        settled_agent(w, &json!({"agentNetwork": {"access": ["worker"]}})).await;
        w.apply(&agent("worker", "llm", &json!({}))).await;
        w.until("the Deployment names the peer", "Deployment/agent-a", |now| variable(now, "PEER_AGENTS") == "worker")
            .await;
        w.apply(&agent("worker", "llm", &json!({"agentNetwork": {"expose": false}}))).await;
        w.until("the Deployment no longer names the peer", "Deployment/agent-a", |now| {
            variable(now, "PEER_AGENTS") != "worker"
        })
        .await;
        w.until("the Agent reports the missing peer", "Agent/a", |now| {
            condition(now, "PeersResolved")["status"] == "False"
        })
        .await;
    });
}

#[test]
fn b8_a_policy_swap_rolls_only_pods_that_differ() {
    play(Scenario::default(), async |w| {
        w.apply_all(&[gadget("follower", &json!({"follows": true})), gadget("other", &json!({}))]).await;
        w.until_all("both objects are ready", &["Gadget/follower", "Gadget/other"], |all| all.iter().all(is_ready))
            .await;
        w.quiet().await;
        let other = w.look("Deployment/other").await;
        w.swap(Edition::Second);
        let awaiting = || w.counted("kaos_operator_objects_awaiting_policy", &["kind=\"Gadget\""]);
        assert_eq!(awaiting(), 2.0, "no pass has run yet");
        w.until("Deployment/follower follows", "Deployment/follower", |now| {
            image(now) == "registry.example/gadget:second"
        })
        .await;
        w.until_all("both Gadgets had a pass of the new policy", &["Gadget/follower", "Gadget/other"], |all| {
            all.iter().all(|gadget| gadget["status"]["policy"]["version"] == "2.0.0" && is_ready(gadget))
        })
        .await;
        w.quiet().await;
        assert_eq!((w.rollouts("follower").await, w.rollouts("other").await), (2, 1));
        assert_eq!(awaiting(), 0.0);
        let version = |object: &Value| object["metadata"]["generation"].clone();
        assert_eq!(version(&w.look("Deployment/other").await), version(&other));
        w.swap(Edition::First);
        w.until("the Deployment has the former image again", "Deployment/follower", |now| {
            image(now) == "registry.example/gadget:1"
        })
        .await;
    });
}

#[test]
fn b8_the_fiftieth_swap_is_as_fast_as_the_first() {
    play(Scenario::embedded("the test simulates time, and swaps policies"), async |w| {
        w.apply(&gadget("follower", &json!({"follows": true}))).await;
        w.until_ready("Gadget/follower").await;
        for round in 0..50 {
            let (edition, image_of_it) = match round % 2 {
                0 => (Edition::Second, "registry.example/gadget:second"),
                _ => (Edition::First, "registry.example/gadget:1"),
            };
            let began = Instant::now();
            w.swap(edition);
            w.until("Deployment/follower follows", "Deployment/follower", |now| image(now) == image_of_it).await;
            let took = began.elapsed();
            assert!(took < Duration::from_secs(1), "round {round} took {took:?}");
        }
        let told = w.until_ready("Gadget/follower").await;
        assert!(is_true(&told, "Applied"), "{told:#}");
    });
}

#[test]
fn b10_a_change_of_a_model_api_regenerates_its_configuration_and_rolls_its_pods() {
    play(Scenario::default(), async |w| {
        w.apply(&model_api_for("llm", &["a"])).await;
        w.until_ready("ModelAPI/llm").await;
        let (config, before) = (w.list("ConfigMap").await, w.look("Deployment/modelapi-llm").await);
        w.apply(&model_api_for("llm", &["a", "b"])).await;
        w.until("the pods roll", "Deployment/modelapi-llm", |now| hash(now) != hash(&before)).await;
        w.until_ready("ModelAPI/llm").await;
        w.quiet().await;
        assert_ne!(w.list("ConfigMap").await.len(), 0);
        assert_ne!(w.list("ConfigMap").await, config);
        assert_eq!(w.rollouts("modelapi-llm").await, 2);
    });
}

#[test]
fn b11_a_field_removed_from_the_spec_leaves_nothing_behind() {
    play(Scenario::default(), async |w| {
        settled_agent(w, &json!({"mcpServers": ["echo"]})).await;
        let names = |now: &Value| {
            let variables = now["spec"]["template"]["spec"]["containers"][0]["env"].as_array().unwrap().clone();
            variables.iter().map(|variable| text(&variable["name"]).to_owned()).collect::<Vec<_>>()
        };
        let with = names(&w.look("Deployment/agent-a").await);
        assert!(with.iter().any(|name| name.starts_with("MCP_SERVER")), "{with:?}");
        w.apply(&agent("a", "llm", &json!({}))).await;
        w.until("the removed field is gone", "Deployment/agent-a", |now| {
            names(now).iter().all(|name| !name.starts_with("MCP_SERVER"))
        })
        .await;
        w.apply(&web_with(&json!({}))).await;
        w.until_ready("Gadget/web").await;
        w.apply(&gadget("web", &json!({"leaveOut": ["ConfigMap", "Secret"]}))).await;
        w.until_all("the children of the removed fields are gone", &CHILDREN[..3], |all| {
            all[0].is_null() && all[2].is_null()
        })
        .await;
    });
}
