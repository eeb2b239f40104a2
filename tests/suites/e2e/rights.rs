//! Every right that the chart gives is needed, and no other is.

use std::collections::BTreeSet;

use kaos_tests::harness::World;
use kaos_tests::harness::samples::{agent, mcp_server, model_api};
use kaos_tests::harness::scenario::routes;
use serde_json::{Value, json};

use crate::support::{Release, SYSTEM, until, until_ready};

fn team() -> Vec<Value> {
    vec![model_api("llm"), mcp_server("echo"), agent("a", "llm", &json!({"mcpServers": ["echo"]}))]
}

/// Settings that come to an agent while the operator runs.
fn settings() -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "rights", "namespace": SYSTEM, "labels": {"kaos.tools/policy": "package"}},
        "data": {"policy.yaml": "name: agent\nsettings: {logLevel: DEBUG}\n"}})
}

/// What a rule is about, as the audit log names it.
fn resources(rule: &Value) -> BTreeSet<String> {
    rule["resources"].as_array().unwrap().iter().map(|item| item.as_str().unwrap().to_owned()).collect()
}

/// The rules of a role, as kubectl gives them.
fn rules(release: &Release, role: &[&str]) -> Vec<Value> {
    let role = release.cluster.kubectl(&[&["get"], role, &["-o", "json"]].concat()).expect();
    serde_json::from_str::<Value>(&role).unwrap()["rules"].as_array().unwrap().clone()
}

fn set_rules(release: &Release, role: &[&str], rules: &[Value]) {
    let patch = json!({"rules": rules}).to_string();
    release.cluster.kubectl(&[&["patch"], role, &["--type=merge", "-p", &patch]].concat()).expect();
}

/// A life short of one rule, until something is refused for want of it.
async fn live_without(release: &Release, world: &World, role: &[&str], all: &[Value], number: usize) {
    let without: Vec<Value> = all.iter().enumerate().filter(|(at, _)| *at != number).map(|(_, r)| r.clone()).collect();
    set_rules(release, role, &without);
    let missed = resources(&all[number]);
    let mark = release.cluster.audit().mark().unwrap();
    let system = release.over(SYSTEM);
    let operator = release.operator(&[]).await;
    system.apply(&settings()).await;
    world.apply_all(&team()).await;
    let owner = missed.iter().any(|resource| resource.ends_with("/finalizers"));
    let is_missed = || {
        let asked = release.cluster.audit().since(mark, crate::support::USER).unwrap();
        asked.iter().any(|request| {
            // The right to an owner's finalizers is asked for on the way, when a child is made.
            request.code == 403 && (missed.contains(&request.resource) || owner && request.resource == "deployments")
        })
    };
    until(&format!("something misses {:?}", all[number]), &operator, is_missed).await;
    drop(operator);
    set_rules(release, role, all);
    // The Lease of one that was killed is not waited for.
    system.delete(crate::support::LEASE).await;
    system.delete(&format!("{SYSTEM}:ConfigMap/rights")).await;
    release.cluster.kubectl(&["delete", "policyrevisions", "--all", "-n", SYSTEM]).expect();
    for object in team() {
        world.delete(&crate::support::at(&object)).await;
    }
    world.until_true("the children are gone", async || world.list("Deployment").await.is_empty()).await;
}

#[tokio::test]
async fn without_any_one_of_its_rules_something_is_refused() {
    let release = Release::install(&[]).await;
    // Routes are served, and the operator is told of a Gateway.
    let world = release.world("rights").await;
    world.apply(&routes()).await;
    let cluster_role = ["clusterrole", "kaos-kaos-operator-kaos-operator"];
    let role = ["role", "kaos-kaos-operator-home", "-n", SYSTEM];
    for role in [&cluster_role[..], &role[..]] {
        let all = rules(&release, role);
        for number in 0..all.len() {
            live_without(&release, &world, role, &all, number).await;
        }
    }
    let operator = release.working_operator().await;
    world.apply_all(&team()).await;
    until_ready(&world, &team()).await;
    drop(operator);
    world.delete("CustomResourceDefinition/httproutes.gateway.networking.k8s.io").await;
}
