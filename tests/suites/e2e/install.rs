//! Installs and upgrades the chart.

use kaos_tests::harness::read::{text, variable};
use kaos_tests::harness::samples::{agent, mcp_server, model_api};
use kaos_tests::harness::{World, is_ready};
use serde_json::{Value, json};

use crate::support::{CHART, RELEASE, Release, SYSTEM, USER, until, until_ready};

fn team() -> Vec<Value> {
    vec![model_api("llm"), mcp_server("echo"), agent("a", "llm", &json!({"mcpServers": ["echo"]}))]
}

async fn image_of(world: &World, deployment: &str) -> String {
    let deployment = world.look(&format!("Deployment/{deployment}")).await;
    text(&deployment["spec"]["template"]["spec"]["containers"][0]["image"]).to_owned()
}

#[tokio::test]
async fn the_pods_of_the_chart_meet_the_restricted_standard() {
    let release = Release::install(&["--set", "controllerManager.replicas=2"]).await;
    let system = release.over(SYSTEM);
    let deployment = system.look("Deployment/kaos-kaos-operator-controller-manager").await;
    // Helm has waited until the replicas are ready. The namespace enforces the standard `restricted`, so the operator's
    // pods meet this standard.
    assert_eq!(deployment["status"]["readyReplicas"], 2);
    let template = &deployment["spec"]["template"]["spec"];
    assert_eq!(template["containers"][0]["securityContext"]["readOnlyRootFilesystem"], true);
    assert_eq!(release.cluster.kubectl(&["get", "pdb", "-n", SYSTEM, "-o", "name"]).expect().lines().count(), 1);
    let tested = release.cluster.helm(&["get", "notes", RELEASE, "-n", SYSTEM]).expect();
    assert!(tested.contains("in all namespaces"), "{tested}");
}

#[tokio::test]
async fn changed_values_reach_the_pods_and_a_rollback_reverts_them() {
    let release = Release::install(&[]).await;
    let world = release.world("changed").await;
    world.apply_all(&team()).await;
    {
        let _operator = release.working_operator().await;
        until_ready(&world, &team()).await;
    }
    let checksum = async || {
        let deployment = release.over(SYSTEM).look("Deployment/kaos-kaos-operator-controller-manager").await;
        text(&deployment["spec"]["template"]["metadata"]["annotations"]["checksum/config"]).to_owned()
    };
    let (image, before) = (image_of(&world, "agent-a").await, checksum().await);
    release
        .helm("upgrade", &["--set", "defaultImages.agentRuntime=registry.example/agent:2", "--set", "logLevel=DEBUG"])
        .expect();
    // The operator reads its environment only at its start. So the chart changes an annotation of the pod template, and
    // Kubernetes replaces the pods.
    assert_ne!(checksum().await, before);
    {
        let _operator = release.working_operator().await;
        world.until("Agent/a has the new image", "Agent/a", is_ready).await;
        world
            .until("Deployment/agent-a has the new image", "Deployment/agent-a", |d| {
                text(&d["spec"]["template"]["spec"]["containers"][0]["image"]) == "registry.example/agent:2"
            })
            .await;
        world
            .until("Deployment/agent-a logs more", "Deployment/agent-a", |d| variable(d, "LOG_LEVEL") == "DEBUG")
            .await;
    }
    release.cluster.helm(&["rollback", RELEASE, "1", "-n", SYSTEM, "--wait"]).expect();
    assert_eq!(checksum().await, before);
    let _operator = release.working_operator().await;
    world
        .until("Deployment/agent-a has the old image", "Deployment/agent-a", |d| {
            text(&d["spec"]["template"]["spec"]["containers"][0]["image"]) == image
        })
        .await;
    until_ready(&world, &team()).await;
}

#[tokio::test]
async fn helm_takes_over_and_updates_definitions_that_it_did_not_create() {
    let release = Release::prepare().await;
    // Create the CustomResourceDefinition like Helm does for the `crds/` folder of another chart: without Helm's
    // labels, and with an older schema.
    let crd = "agents.kaos.tools";
    release.cluster.kubectl(&["delete", "crd", "--ignore-not-found", crd]).expect();
    release.cluster.kubectl(&["create", "-f", "../crds/generated/agents.yaml"]).expect();
    let path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/config/description";
    let patch = json!([{"op": "replace", "path": path, "value": "older"}]).to_string();
    release.cluster.kubectl(&["patch", "crd", crd, "--type=json", "-p", &patch]).expect();
    let refused = release.helm("install", &[]).expect_failure();
    assert!(refused.contains("invalid ownership metadata"), "{refused}");
    release.helm("upgrade", &["--install", "--take-ownership", "--force-conflicts"]).expect();
    let explained = release.cluster.kubectl(&["explain", "agent.spec.config"]).expect();
    assert!(!explained.contains("older"), "{explained}");
}

#[tokio::test]
async fn the_definitions_and_their_objects_outlive_the_release() {
    let release = Release::install(&[]).await;
    let world = release.world("kept").await;
    world.apply(&model_api("llm")).await;
    release.cluster.helm(&["uninstall", RELEASE, "-n", SYSTEM, "--wait"]).expect();
    assert_eq!(world.look("ModelAPI/llm").await["spec"]["mode"], "Proxy");
    release.helm("install", &[]).expect();
    let _operator = release.working_operator().await;
    until_ready(&world, &[model_api("llm")]).await;
}

#[tokio::test]
async fn a_second_release_for_all_namespaces_is_refused() {
    let release = Release::install(&[]).await;
    release.world("second").await;
    let second = |flags: &[&str]| {
        let install = ["install", "second", CHART, "--namespace", "second", "--dry-run=server"];
        release.cluster.helm(&[&install[..], flags].concat())
    };
    let refused = second(&[]).expect_failure();
    let (which, remedy) =
        ("the operator in namespace kaos-system (kaos) already works in all namespaces", "watchNamespaces");
    assert!(refused.contains(which) && refused.contains(remedy), "{refused}");
    let taken = second(&["--set", "watchNamespaces={second}"]).expect_failure();
    assert!(taken.contains("invalid ownership metadata"), "the definitions belong to the first release: {taken}");
    second(&["--set", "watchNamespaces={second}", "--set", "crds.install=false"]).expect();
    // Create the role binding that the KAOS chart creates for a release with the name kaos-operator.
    let (role, account) = ("--clusterrole=kaos-operator-kaos-operator", "--serviceaccount=second:kaos-operator");
    let cluster = release.cluster;
    cluster.kubectl(&["create", "clusterrolebinding", "kaos-operator-rolebinding", role, account]).expect();
    let upgraded = cluster.helm(&["upgrade", RELEASE, CHART, "--namespace", SYSTEM, "--dry-run=server"]);
    cluster.kubectl(&["delete", "clusterrolebinding", "kaos-operator-rolebinding"]).expect();
    let refused = upgraded.expect_failure();
    assert!(
        refused.contains("the operator in namespace second (kaos-operator) already works in all namespaces"),
        "{refused}"
    );
}

#[tokio::test]
async fn with_listed_namespaces_roles_suffice_and_others_stay_untouched() {
    let release = Release::prepare().await;
    let (one, other) = (release.world("team-a").await, release.world("elsewhere").await);
    release.world("team-b").await;
    release.helm("install", &["--values", &format!("{CHART}/ci/namespaced-values.yaml")]).expect();
    release.until_owners_are_known().await;
    let rights = release.cluster.kubectl(&["auth", "can-i", "list", "agents", "-A", "--as", USER]);
    assert!(!rights.ok, "{rights:?}");
    let mark = release.cluster.audit().mark().unwrap();
    let operator = release.working_operator().await;
    other.apply(&model_api("llm")).await;
    one.apply_all(&team()).await;
    until_ready(&one, &team()).await;
    assert_eq!(release.refused_since(mark), Vec::<String>::new(), "rights are missing");
    until("the operator is ready", &operator, || operator.is_ready()).await;
    assert_eq!(other.look("ModelAPI/llm").await["status"], json!({"observedGeneration": -1, "ready": false}));
    assert!(other.list("Deployment").await.is_empty());
}
