//! Tests a policy that is a single file. To install the policy, the test creates a ConfigMap with `kubectl create
//! configmap --from-file=policy.js`, and adds a label.

use kaos_tests::harness::World;
use serde_json::{Value, json};

use crate::support::{Release, SYSTEM, until_active, until_state};

const SCRIPT: &str = include_str!("../../../guest-policies/mcpserver/policy.js");
const MANIFEST: &str = include_str!("../../../guest-policies/mcpserver/policy.yaml");
const SERVER: &str = "MCPServer/tools";
const MAP: &str = "policy-mcpserver";

async fn until_served_by(world: &World, version: &str) -> Value {
    let served = |told: &Value| told["status"]["policy"]["version"] == version && told["status"]["ready"] == true;
    world.until(&format!("version {version} of the script serves"), SERVER, served).await
}

#[tokio::test]
async fn a_script_in_a_labelled_config_map_serves_and_a_broken_edit_leaves_the_last_good_one() {
    let release = Release::install(&[]).await;
    let _operator = release.working_operator().await;
    let world = release.world("scripted").await;
    let spec = json!({"runtime": "custom", "container": {"image": "registry.example/tools:1"}});
    let server = json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "MCPServer",
        "metadata": {"name": "tools", "namespace": "scripted"}, "spec": spec});
    world.apply(&server).await;

    let version = |number: &str| SCRIPT.replacen("version: '0.1.0'", &format!("version: '{number}'"), 1);
    let folder = release.cluster.folder().join("script");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("policy.js"), version("7.0.0")).unwrap();
    std::fs::write(folder.join("policy.yaml"), MANIFEST.replace("version: 0.1.0\n", "")).unwrap();
    let files = format!("--from-file={}", folder.display());
    release.cluster.kubectl(&["create", "configmap", MAP, "-n", SYSTEM, &files]).expect();
    release.cluster.kubectl(&["label", "configmap", MAP, "-n", SYSTEM, "kaos.tools/policy=package"]).expect();
    until_active(&release, MAP).await;
    until_served_by(&world, "7.0.0").await;

    let edit = |script: &str| {
        let patch = json!({"data": {"policy.js": script}}).to_string();
        release.cluster.kubectl(&["patch", "configmap", MAP, "-n", SYSTEM, "--type=merge", "-p", &patch]).expect();
    };
    edit(&version("7.1.0"));
    until_served_by(&world, "7.1.0").await;
    edit(&format!("{}\nlet broken = ;\n", version("7.2.0")));
    let refused = until_state(&release, MAP, "Refused").await;
    let message = refused["status"]["message"].as_str().unwrap();
    let line = version("7.2.0").lines().count() + 2;
    assert!(message.contains("policy.js") && message.contains(&format!(":{line}")), "{line}: {message}");
    until_served_by(&world, "7.1.0").await;
}
