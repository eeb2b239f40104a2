//! Tests malformed objects, CustomResourceDefinitions that a user deletes and creates again, and terminating
//! namespaces. The operator reports the reason in each case, and recovers without a restart.

use std::time::Duration;

use kaos_tests::gadget::{FINALIZER, gadget};
use kaos_tests::harness::faults::OPERATOR;
use kaos_tests::harness::samples::{agent, model_api, namespace};
use kaos_tests::harness::{Fault, Scenario, World, condition, is_ready, play};
use serde_json::{Value, json};

use crate::support::{CHILDREN, web};

/// Returns objects that the schema no longer allows, but that an API server with an older schema could have stored.
fn malformed() -> Vec<(&'static str, Value)> {
    let of = |api: &str, kind: &str, name: &str, spec: Value| json!({"apiVersion": api, "kind": kind, "metadata": {"name": name, "namespace": "test", "generation": 1}, "spec": spec});
    let kaos = "kaos.tools/v1alpha1";
    let test = "test.example.com/v1";
    vec![
        ("agents", of(kaos, "Agent", "spec-is-text", json!("text"))),
        ("agents", of(kaos, "Agent", "spec-is-null", Value::Null)),
        (
            "agents",
            of(kaos, "Agent", "model-is-number", json!({"modelAPI": 7, "model": ["x"], "mcpServers": {"a": 1}})),
        ),
        ("agents", of(kaos, "Agent", "old-fields", json!({"modelAPIRef": {"name": "llm"}, "replicas": "three"}))),
        ("modelapis", of(kaos, "ModelAPI", "mode-is-list", json!({"mode": ["Proxy"], "proxyConfig": "none"}))),
        ("modelapis", of(kaos, "ModelAPI", "empty", json!({}))),
        ("mcpservers", of(kaos, "MCPServer", "params-is-list", json!({"runtime": "python-string", "params": [1, 2]}))),
        (
            "gadgets",
            of(
                test,
                "Gadget",
                "config-is-text",
                json!({"config": "text", "labels": [], "leaveOut": {"a": 1}, "port": "x"}),
            ),
        ),
        ("gadgets", json!({"apiVersion": test, "kind": "Gadget", "metadata": {"name": "bare", "namespace": "test"}})),
        (
            "gadgets",
            json!({"apiVersion": test, "kind": "Gadget", "metadata": {"name": "odd-metadata", "namespace": "test",
            "labels": "text", "annotations": [1], "finalizers": "none", "ownerReferences": {}, "generation": "one"},
            "spec": {}, "status": {"conditions": "none", "ready": "yes"}}),
        ),
    ]
}

fn group(plural: &str) -> &'static str {
    if plural == "gadgets" { "test.example.com" } else { "kaos.tools" }
}

fn plant(w: &World) {
    for (plural, object) in malformed() {
        w.embedded().plant(group(plural), plural, object);
    }
}

#[test]
fn malformed_objects_at_the_start_are_reported_and_block_no_other() {
    play(Scenario::embedded("the test stores objects that violate the schema").idle(), async |w| {
        plant(w);
        w.apply_all(&[web(), model_api("llm"), agent("a", "llm", &json!({}))]).await;
        w.start().await;
        w.until_all("the valid objects are ready", &["Gadget/web", "ModelAPI/llm", "Agent/a"], |all| {
            all.iter().all(is_ready)
        })
        .await;
        w.pass_time(Duration::from_mins(1)).await;
        for (plural, object) in malformed().into_iter().filter(|(plural, _)| *plural != "gadgets") {
            let at = format!("{}/{}", object["kind"].as_str().unwrap(), object["metadata"]["name"].as_str().unwrap());
            let now = w.look(&at).await;
            let told =
                condition(&now, "Accepted")["status"] == "False" || condition(&now, "Resolved")["status"] == "False";
            let kind = format!("kind=\"{}\"", object["kind"].as_str().unwrap());
            let counted: f64 = ["refused", "failed", "retried"]
                .iter()
                .map(|result| w.counted("kaos_operator_passes_total", &[&kind, &format!("result=\"{result}\"")]))
                .sum();
            assert!(told || counted >= 1.0, "{plural} {at}: {now:#}\n{}", w.metrics());
        }
    });
}

#[test]
fn malformed_objects_that_appear_later_heal_after_a_fix() {
    play(Scenario::embedded("the test stores objects that violate the schema"), async |w| {
        plant(w);
        w.pass_time(Duration::from_mins(1)).await;
        w.apply_all(&[model_api("empty"), model_api("mode-is-list"), gadget("bare", &json!({}))]).await;
        for (name, agent) in ["spec-is-text", "spec-is-null", "model-is-number", "old-fields"]
            .map(|name| (name, agent(name, "empty", &json!({}))))
        {
            w.delete(&format!("Agent/{name}")).await;
            w.apply(&agent).await;
        }
        let mended = [
            "ModelAPI/empty",
            "ModelAPI/mode-is-list",
            "Gadget/bare",
            "Agent/spec-is-text",
            "Agent/spec-is-null",
            "Agent/model-is-number",
            "Agent/old-fields",
        ];
        w.until_all("the objects are ready", &mended, |all| all.iter().all(is_ready)).await;
    });
}

const GADGETS: &str = "CustomResourceDefinition/gadgets.test.example.com";
const MODELS: &str = "CustomResourceDefinition/modelapis.kaos.tools";

#[test]
fn a_deleted_and_recreated_definition_is_watched_without_a_restart() {
    play(Scenario::embedded("definitions are shared on a real control plane"), async |w| {
        w.apply_all(&[web(), model_api("llm"), agent("a", "llm", &json!({}))]).await;
        w.until_all("all objects are ready", &["Gadget/web", "ModelAPI/llm", "Agent/a"], |all| {
            all.iter().all(is_ready)
        })
        .await;
        for definition in [GADGETS, MODELS] {
            w.delete(definition).await;
            w.until_gone(definition).await;
        }
        w.until_all("the children are deleted, too", &CHILDREN, |all| all.iter().all(Value::is_null)).await;
        w.until_true("a metric reports that the kind is not served", async || {
            w.counted("kaos_operator_watch_state", &["kind=\"Gadget\"", "state=\"unserved\""]) >= 1.0
        })
        .await;
        w.until("the Agent reports the missing ModelAPI", "Agent/a", |agent| {
            condition(agent, "Resolved")["status"] == "False"
        })
        .await;
        assert!(!w.look("Deployment/agent-a").await.is_null());
        w.install_definitions(false).await.unwrap();
        w.apply_all(&[web(), model_api("llm")]).await;
        w.until_all("all objects are ready", &["Gadget/web", "ModelAPI/llm", "Agent/a"], |all| {
            all.iter().all(is_ready)
        })
        .await;
    });
}

#[test]
fn definitions_that_are_installed_after_the_start_are_served() {
    play(Scenario::embedded("definitions are shared on a real control plane").bare(), async |w| {
        w.spawn();
        w.pass_time(Duration::from_secs(30)).await;
        w.install_definitions(false).await.unwrap();
        w.apply_all(&[web(), model_api("llm")]).await;
        w.until_all("both objects are ready", &["Gadget/web", "ModelAPI/llm"], |all| all.iter().all(is_ready)).await;
        assert!(w.probe().ready().is_ok());
    });
}

#[test]
fn an_optional_type_is_used_while_it_is_served() {
    let environment =
        [("GATEWAY_API_ENABLED", "true"), ("GATEWAY_NAME", "gateway"), ("GATEWAY_NAMESPACE", "kaos-system")];
    play(Scenario::embedded("definitions are shared on a real control plane").idle(), async |w| {
        for (name, value) in environment {
            w.set_environment(name, value);
        }
        w.start().await;
        w.apply(&model_api("llm")).await;
        w.until_ready("ModelAPI/llm").await;
        w.install_definitions(true).await.unwrap();
        w.until("the ModelAPI has a route", "HTTPRoute/modelapi-llm", |route| !route.is_null()).await;
        let routes = "CustomResourceDefinition/httproutes.gateway.networking.k8s.io";
        w.delete(routes).await;
        w.until_gone(routes).await;
        w.pass_time(Duration::from_mins(2)).await;
        w.patch("ModelAPI/llm", &json!({"metadata": {"annotations": {"touch": "1"}}})).await;
        w.until_ready("ModelAPI/llm").await;
        w.install_definitions(true).await.unwrap();
        w.until("the route is back", "HTTPRoute/modelapi-llm", |route| !route.is_null()).await;
    });
}

#[test]
fn a_namespace_deleted_during_a_pass_ends_and_can_be_recreated() {
    play(Scenario::embedded("the test delays requests").within("test"), async |w| {
        w.apply(&model_api("llm")).await;
        w.until_ready("ModelAPI/llm").await;
        w.break_it(Fault::on_writes().slow(Duration::from_secs(5)));
        w.apply_all(&[web(), agent("a", "llm", &json!({}))]).await;
        w.pass_time(Duration::from_secs(8)).await;
        w.delete("Namespace/test").await;
        w.until_gone("Namespace/test").await;
        w.mend();
        w.pass_time(Duration::from_mins(10)).await;
        assert_eq!(w.probe().queue().0, 0);
        w.apply(&namespace("test")).await;
        w.apply_all(&[web(), model_api("llm"), agent("a", "llm", &json!({}))]).await;
        let all =
            w.until_all("all objects are ready", &["Gadget/web", "Agent/a"], |all| all.iter().all(is_ready)).await;
        assert_eq!(all[0]["metadata"]["finalizers"], json!([FINALIZER]));
    });
}

#[test]
fn an_unavailable_server_restarts_no_pod() {
    play(Scenario::embedded("the test revokes rights"), async |w| {
        let boss = agent("boss", "llm", &json!({"agentNetwork": {"access": ["worker"]}}));
        w.apply_all(&[model_api("llm"), agent("worker", "llm", &json!({})), boss]).await;
        w.until_all("both objects are ready", &["Agent/boss", "Agent/worker"], |all| all.iter().all(is_ready)).await;
        w.quiet().await;
        let (before, rollouts) = (w.look("Deployment/agent-boss").await, w.rollouts("agent-boss").await);
        // Make the API server behave as if it had just restarted, and had not loaded its roles yet.
        w.embedded().authorise(|attempt| attempt.user != OPERATOR || attempt.verb.is_write());
        w.embedded().cut_watches();
        w.until_true("a metric reports the missing right", async || {
            w.counted("kaos_operator_watch_state", &["kind=\"Agent\"", "state=\"forbidden\""]) >= 1.0
        })
        .await;
        w.pass_time(Duration::from_secs(20)).await;
        w.embedded().allow_everything();
        w.until_true("a metric reports that the watch works again", async || {
            w.counted("kaos_operator_watch_state", &["kind=\"Agent\"", "state=\"synced\""]) >= 1.0
        })
        .await;
        w.quiet().await;
        assert_eq!(w.look("Deployment/agent-boss").await["spec"], before["spec"]);
        assert_eq!(w.rollouts("agent-boss").await, rollouts);
    });
}

#[test]
fn revoked_rights_are_reported_and_heal_once_they_are_back() {
    play(Scenario::embedded("the test revokes rights"), async |w| {
        w.apply(&web()).await;
        w.until_ready("Gadget/web").await;
        w.embedded().authorise(|attempt| attempt.user != OPERATOR);
        w.embedded().cut_watches();
        w.pass_time(Duration::from_secs(30)).await;
        w.delete("Service/web").await;
        w.apply_all(&[gadget("other", &json!({})), model_api("llm")]).await;
        w.pass_time(Duration::from_secs(400)).await;
        let told = w.counted("kaos_operator_watch_state", &["state=\"forbidden\""])
            + w.counted("kaos_operator_watch_errors_total", &[]);
        assert!(told >= 1.0, "{}", w.metrics());
        w.embedded().allow_everything();
        w.until_all("all objects are ready", &["Gadget/web", "Gadget/other", "ModelAPI/llm"], |all| {
            all.iter().all(is_ready)
        })
        .await;
        w.until("the Service is back", "Service/web", |service| !service.is_null()).await;
    });
}
