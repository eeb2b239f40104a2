//! Rollouts on real Kubernetes. A rollout of a package, or of a default policy of another version of the operator,
//! returns all objects if their pods never become ready.

use std::collections::{BTreeMap, BTreeSet};

use kaos_tests::harness::World;
use kaos_tests::harness::read::{name, text};
use kaos_tests::harness::samples::mcp_server;
use kaos_tests::shipped;
use serde_json::Value;

use crate::support::{Release, SYSTEM, until_ready, until_state};

const SERVERS: usize = 10;
/// No node has 1000 processors, so the scheduler finds no node for the pods of this package.
const PACKAGE: &str = r#"
name: mcpserver
settings: {resources: {requests: {cpu: "1000"}}}
rollout: {mode: staged, steps: [1%, 10%, 100%], pause: 1m, patience: 30s}
"#;

/// Returns the ReplicaSets with at least one wanted replica, by name. Each value is the hash of the ReplicaSet's pod
/// template.
async fn replica_sets(world: &World) -> BTreeMap<String, String> {
    let mut all = world.list("ReplicaSet").await;
    all.retain(|set| set["spec"]["replicas"] != 0);
    let hash = |set: &Value| text(&set["metadata"]["labels"]["pod-template-hash"]).to_owned();
    all.iter().map(|set| (name(set).to_owned(), hash(set))).collect()
}

/// Returns the names of the Deployments that already have the settings of the package.
async fn moved(world: &World) -> BTreeSet<String> {
    let mut all = world.list("Deployment").await;
    let cpu = |it: &Value| it["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"].clone();
    // Compare with two forms, because the API server may store the quantity 1000 in its shortest form.
    all.retain(|it| ["1k", "1000"].iter().any(|quantity| cpu(it) == *quantity));
    all.iter().map(|it| name(it).to_owned()).collect()
}

/// Runs a rollout that returns all objects. If `is_killed` is true, kills the operator after it has moved the first
/// object, and starts another operator.
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

/// Writes the default policy of MCPServers into a separate folder. Its component has other bytes, and its `policy.yaml`
/// has these settings. Returns the path of the component.
fn other_default(release: &Release, name: &str, settings: &str) -> String {
    let (component, file) = shipped::embedded("mcpserver").unwrap();
    let folder = release.cluster.folder().join(name);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("policy.yaml"), format!("{file}\nsettings: {settings}\n")).unwrap();
    let component = shipped::with_section(component, "build", name.as_bytes()).unwrap();
    std::fs::write(folder.join("mcpserver.wasm"), component).unwrap();
    folder.join("mcpserver.wasm").display().to_string()
}

/// Returns the state and the reason of each revision of the default policy of MCPServers.
async fn default_policies(release: &Release) -> Vec<(String, String)> {
    let all = release.over(SYSTEM).list("PolicyRevision").await;
    let of = all.iter().filter(|it| it["spec"]["source"]["configMap"] == "default:mcpserver.kaos.tools");
    of.map(|it| (text(&it["status"]["state"]).to_owned(), text(&it["status"]["reason"]).to_owned())).collect()
}

#[tokio::test]
async fn an_upgrade_whose_default_policy_breaks_pods_returns_and_one_that_changes_no_pod_serves_at_once() {
    let release = Release::install(&[]).await;
    let operator = release.working_operator().await;
    let world = release.world("upgraded").await;
    let servers: Vec<Value> = (0..SERVERS).map(|number| mcp_server(&format!("s{number}"))).collect();
    world.apply_all(&servers).await;
    until_ready(&world, &servers).await;
    world.quiet().await;
    let before = replica_sets(&world).await;
    let active = ("Active".to_owned(), "Active".to_owned());
    world.until_true("the policy is recorded", async || default_policies(&release).await == [active.clone()]).await;
    drop(operator);

    let broken = other_default(&release, "broken", r#"{resources: {requests: {cpu: "1000"}}}"#);
    let steps = "--rollout={steps: [1%, 10%, 100%], pause: 1m, patience: 30s}";
    let operator = release.working_operator_with(&["--policy", &broken, steps]).await;
    world.until_true("the first server is moved", async || moved(&world).await.len() == 1).await;
    let first = moved(&world).await;
    let returned = ("Quarantined".to_owned(), "Returned".to_owned());
    world.until_true("the policy returns", async || default_policies(&release).await.contains(&returned)).await;
    world.until_true("no server is moved", async || moved(&world).await.is_empty()).await;
    until_ready(&world, &servers).await;
    world.until_true("the same ReplicaSets serve", async || replica_sets(&world).await == before).await;
    for number in 0..SERVERS {
        let deployment = format!("mcpserver-s{number}");
        let rollouts = 1 + usize::from(first.contains(&deployment));
        assert_eq!(world.rollouts(&deployment).await, rollouts, "{deployment}: only the first server changed");
    }
    drop(operator);

    let harmless = other_default(&release, "harmless", "{}");
    let operator = release.working_operator_with(&["--policy", &harmless]).await;
    let replaced = ("Superseded".to_owned(), "Replaced".to_owned());
    world.until_true("the policy serves", async || default_policies(&release).await.contains(&replaced)).await;
    world.quiet().await;
    assert_eq!(replica_sets(&world).await, before, "no pod was replaced");
    drop(operator);
}
