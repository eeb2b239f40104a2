//! Runs the commands of the README and of the policy guide without changes.

use kaos_tests::blocks::blocks;
use kaos_tests::case;
use kaos_tests::control_plane::Process;
use kaos_tests::harness::read::{text, variable};
use kaos_tests::harness::{World, is_true};

use crate::support::{Release, SYSTEM, until_ready};

const TEAM: &str = "../docs/examples/team.yaml";
const COORDINATOR: &str = "Deployment/agent-coordinator";

/// Returns the log level of the coordinator's pods.
async fn level(world: &World) -> String {
    text(&variable(&world.look(COORDINATOR).await, "LOG_LEVEL")).to_owned()
}

/// Waits until the coordinator's Deployment has this log level.
async fn until_level(world: &World, level: &str) {
    world
        .until(&format!("the pods log at the level {level}"), COORDINATOR, |it| variable(it, "LOG_LEVEL") == level)
        .await;
}

#[tokio::test]
async fn the_readme_installs_the_operator_runs_a_team_and_changes_a_default() {
    let release = Release::prepare().await;
    let world = release.world("team").await;
    let mut operator: Option<Process> = None;
    let (mut levels, mut printed) = (Vec::<String>::new(), String::new());
    for block in blocks("README.md", &["cluster"]).unwrap() {
        // Leave out the command that creates the namespace, because the test itself creates the namespace, and removes
        // it at the end.
        let block = block.replace("kubectl create namespace team\n", "");
        printed += &release.cluster.shell(&block).expect();
        if operator.is_none() {
            // The pods of this cluster run no processes, so the test starts an operator.
            release.until_owners_are_known().await;
            operator = Some(release.working_operator().await);
            continue;
        }
        if block.contains("policy push") {
            until_level(&world, "DEBUG").await;
        }
        if block.contains("delete configmap") {
            until_level(&world, "INFO").await;
        }
        until_ready(&world, &case::documents(TEAM.as_ref()).unwrap()).await;
        levels.push(level(&world).await);
    }
    assert_eq!(levels, ["INFO", "DEBUG", "INFO"], "a team, another default, and back");
    for told in ["coordinator", "researcher", "policy-agent-settings", "Active", "LOG_LEVEL", "DEBUG"] {
        assert!(printed.contains(told), "{told} is not in\n{printed}");
    }
    assert!(operator.unwrap().is_ready());
}

#[tokio::test]
async fn the_guide_creates_a_policy_that_serves_a_new_kind() {
    let release = Release::install(&[]).await;
    let _operator = release.working_operator().await;
    let world = release.over("default");
    release.cluster.shell("rm -rf target/guide").expect();
    let mut printed = String::new();
    for block in blocks("docs/guide/writing-policies.md", &["test", "cluster"]).unwrap() {
        printed += &release.cluster.shell(&block).expect();
    }
    for told in ["PolicyRevision policy-red-kite-", "SITE_TITLE", "spec.title"] {
        assert!(printed.contains(told), "{told} is not in\n{printed}");
    }
    // The new kind behaves like the kinds of KAOS: the operator restores a deleted child, and deleting the object
    // deletes its children.
    world.delete(FUJI).await;
    world.until("the operator creates the Deployment again", FUJI, |live| live["status"]["readyReplicas"] == 1).await;
    world.until("the status of the Kite is ready", "Kite/fuji", |kite| is_true(kite, "Ready")).await;
    release.cluster.kubectl(&["delete", "-f", "../target/guide/kite.yaml"]).expect();
    world.until_gone(FUJI).await;
    let crd = "../target/guide/red-kite/crd.yaml";
    release.cluster.kubectl(&["delete", "-f", "../target/guide/red-kite.yaml", "-f", crd]).expect();
    release.over(SYSTEM).until_gone("ConfigMap/policy-red-kite").await;
}

const FUJI: &str = "Deployment/fuji";
