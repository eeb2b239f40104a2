//! Rollouts on real Kubernetes: a package whose pods never become ready returns by itself.

use std::collections::{BTreeMap, BTreeSet};

use kaos_tests::harness::World;
use kaos_tests::harness::read::{name, text};
use kaos_tests::harness::samples::mcp_server;
use kaos_tests::shipped;
use serde_json::Value;

use crate::support::{Release, SYSTEM, until_ready, until_state};

const SERVERS: usize = 10;
/// No node has so many processors, so the scheduler finds no node for the pods of this package.
const PACKAGE: &str = r#"
name: mcpserver
settings: {resources: {requests: {cpu: "1000"}}}
rollout: {mode: staged, steps: [1%, 10%, 100%], pause: 1m, patience: 30s}
"#;

/// Returns the ReplicaSets that want pods: their hashes of pod templates by name.
async fn replica_sets(world: &World) -> BTreeMap<String, String> {
    let mut all = world.list("ReplicaSet").await;
    all.retain(|set| set["spec"]["replicas"] != 0);
    let hash = |set: &Value| text(&set["metadata"]["labels"]["pod-template-hash"]).to_owned();
    all.iter().map(|set| (name(set).to_owned(), hash(set))).collect()
}

/// Returns the Deployments with the settings of the package.
async fn moved(world: &World) -> BTreeSet<String> {
    let mut all = world.list("Deployment").await;
    let cpu = |it: &Value| it["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"].clone();
    // The API server writes quantities in their shortest form.
    all.retain(|it| ["1k", "1000"].iter().any(|quantity| cpu(it) == *quantity));
    all.iter().map(|it| name(it).to_owned()).collect()
}

/// Plays a rollout that returns. If `is_killed` is true, kills the operator when the first object is moved, and starts
/// another one.
async fn returns_to_the_same_replica_sets(namespace: &str, is_killed: bool) {
    let release = Release::install(&[]).await;
    let mut operator = release.working_operator().await;
    let (system, world) = (release.over(SYSTEM), release.world(namespace).await);
    let servers: Vec<Value> = (0..SERVERS).map(|number| mcp_server(&format!("s{number}"))).collect();
    world.apply_all(&servers).await;
    until_ready(&world, &servers).await;
    world.quiet().await;
    let before = replica_sets(&world).await;
    assert_eq!(before.len(), SERVERS);

    system.apply(&shipped::package("crowded", None, PACKAGE).unwrap()).await;
    world.until_true("the first server is moved", async || moved(&world).await.len() == 1).await;
    let first = moved(&world).await;
    if is_killed {
        operator.kill();
        operator = release.working_operator().await;
    }
    let returned = until_state(&release, "crowded", "Quarantined").await;
    assert_eq!(returned["status"]["reason"], "Returned", "{returned:#}");
    let message = text(&returned["status"]["message"]);
    assert!(message.starts_with("at step 1 of 3 (1%) of the rollout: "), "{message}");

    world.until_true("no server is moved", async || moved(&world).await.is_empty()).await;
    until_ready(&world, &servers).await;
    world.until_true("the same ReplicaSets serve", async || replica_sets(&world).await == before).await;
    for number in 0..SERVERS {
        let deployment = format!("mcpserver-s{number}");
        let rollouts = 1 + usize::from(first.contains(&deployment));
        assert_eq!(world.rollouts(&deployment).await, rollouts, "{deployment}: only the first server changed");
    }
    drop(operator);
}

#[tokio::test]
async fn pods_that_never_become_ready_return_a_staged_package_to_the_very_same_replica_sets() {
    returns_to_the_same_replica_sets("crowded", false).await;
}

#[tokio::test]
async fn the_next_operator_returns_a_rollout_in_which_the_operator_was_killed() {
    returns_to_the_same_replica_sets("crowded-killed", true).await;
}
