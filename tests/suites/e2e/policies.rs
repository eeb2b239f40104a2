//! Tests policies on real Kubernetes. The tests install policies as users do: with `policy pack` and `kubectl apply`,
//! or with values of the chart.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use kaos_tests::harness::samples::{agent, model_api};
use kaos_tests::shipped;
use serde_json::{Value, json};

use crate::support::{CHART, RELEASE, Release, SYSTEM, until_active, until_image, until_ready};

fn team() -> Vec<Value> {
    vec![model_api("llm"), agent("a", "llm", &json!({}))]
}

/// Writes two files into one folder: the component of the Agents' policy with changed bytes, and a `policy.yaml` with
/// `settings`.
fn write(folder: &Path, settings: &str) -> PathBuf {
    let (component, file) = shipped::embedded("agent").unwrap();
    // Use a separate folder, because `policy.yaml` applies to every component in the same folder.
    let folder = folder.join("other-agents");
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("agents.wasm");
    std::fs::write(&path, shipped::with_section(component, "edition", b"2").unwrap()).unwrap();
    std::fs::write(path.with_file_name("policy.yaml"), format!("{file}\nsettings: {settings}\n")).unwrap();
    path
}

const AGENT: &str = "Deployment/agent-a";

#[tokio::test]
async fn a_packed_policy_serves_after_kubectl_apply_and_follows_settings_edits() {
    let release = Release::install(&[]).await;
    let _operator = release.working_operator().await;
    let world = release.world("shipped").await;
    world.apply_all(&team()).await;
    until_ready(&world, &team()).await;

    let component = write(release.cluster.folder(), "{image: registry.example/agent:2}");
    let file = release.packed(&component, &["--without-rights"]);
    release.apply(&file);
    let first = until_active(&release, "policy-agent").await;
    until_image(&world, AGENT, "registry.example/agent:2").await;
    world
        .until("the status names the policy", "Agent/a", |told| {
            told["status"]["policy"]["digest"] == first["spec"]["digest"]
        })
        .await;

    // Edit only `policy.yaml` in the ConfigMap, like a user who does not have the component.
    let live = release.over(SYSTEM).look("ConfigMap/policy-agent").await;
    let edited = live["data"]["policy.yaml"].as_str().unwrap().replace("agent:2", "agent:3");
    let edit = json!({"data": {"policy.yaml": edited}}).to_string();
    release
        .cluster
        .kubectl(&["patch", "configmap", "policy-agent", "-n", SYSTEM, "--type=merge", "-p", &edit])
        .expect();
    until_image(&world, AGENT, "registry.example/agent:3").await;
    let second = until_active(&release, "policy-agent").await;
    assert_eq!(second["spec"]["digest"], first["spec"]["digest"], "the component did not change");
    assert_ne!(second["metadata"]["name"], first["metadata"]["name"]);
    let told = release.cluster.kubectl(&["get", "policyrevisions", "-n", SYSTEM]).expect();
    assert!(told.contains("Active") && told.contains("Superseded"), "{told}");
    until_ready(&world, &team()).await;

    release.cluster.kubectl(&["delete", "-f", &file]).expect();
    world
        .until("the default policy answers again", "Agent/a", |told| {
            told["status"]["policy"]["digest"] != first["spec"]["digest"]
        })
        .await;
}

#[tokio::test]
async fn policy_remove_names_the_next_policy_and_deletes_package_and_chunks() {
    let release = Release::install(&[]).await;
    let _operator = release.working_operator().await;
    let world = release.world("removed").await;
    world.apply_all(&team()).await;
    until_ready(&world, &team()).await;
    let component = write(release.cluster.folder(), "{image: registry.example/agent:5}");
    release.apply(&release.packed(&component, &["--without-rights"]));
    until_active(&release, "policy-agent").await;
    until_image(&world, AGENT, "registry.example/agent:5").await;
    let chunk = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "immutable": true, "binaryData": {"part": "AAAA"},
        "metadata": {
            "name": "policy-agent-0000-1", "namespace": SYSTEM, "labels": {"kaos.tools/policy": "chunk"},
            "annotations": {"kaos.tools/policy-index": "policy-agent"},
        },
    });
    let system = release.over(SYSTEM);
    system.apply(&chunk).await;

    let policy = |arguments: &[&str]| {
        release.cluster.operator(&release.cluster.kubeconfig(), &[&["policy"], arguments].concat())
    };
    let listed = policy(&["list"]).err;
    assert!(!listed.contains("policy-agent-0000-1"), "a young chunk may be part of a push: {listed}");
    let told = policy(&["remove", "policy-agent", "--dry-run"]).expect();
    for part in [
        "to remove: ConfigMap kaos-system/policy-agent (",
        "to remove: ConfigMap kaos-system/policy-agent-0000-1 (a chunk)",
        "answers for kaos.tools/v1alpha1 Agent, from the operator's own policies",
        "registry.example/agent:5",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(!system.look("ConfigMap/policy-agent").await.is_null());
    let told = policy(&["remove", "policy-agent"]).expect();
    assert!(told.contains("kaos-operator policy rollback kaos-system/policy-agent"), "{told}");
    for gone in ["ConfigMap/policy-agent", "ConfigMap/policy-agent-0000-1"] {
        assert!(system.look(gone).await.is_null(), "{gone}");
    }
    let other = |it: &Value| it["spec"]["template"]["spec"]["containers"][0]["image"] != "registry.example/agent:5";
    world.until("the default policy answers", AGENT, other).await;
    assert!(
        !policy(&["list"]).expect().contains("policy-agent"),
        "`policy list` shows removed packages only with --all"
    );
    policy(&["rollback", "policy-agent"]).expect();
    until_image(&world, AGENT, "registry.example/agent:5").await;
    policy(&["remove", "policy-agent", "--with-history"]).expect();
    assert!(
        !policy(&["list", "--all"]).expect().contains("policy-agent"),
        "the records of the removed package are gone, too"
    );
}

#[tokio::test]
async fn policies_in_chart_values_serve_until_they_are_removed_from_the_values() {
    let release = Release::prepare().await;
    let folder = release.cluster.folder();
    let component = write(folder, "{}");
    let encoded = folder.join("other-agents.b64");
    std::fs::write(&encoded, BASE64_STANDARD.encode(std::fs::read(component).unwrap())).unwrap();
    let values = folder.join("values.yaml");
    let (_, file) = shipped::embedded("agent").unwrap();
    let file: Value = serde_saphyr::from_str(file).unwrap();
    let settings = json!({"policies": {
        "other-agents": {"grants": file["grants"], "settings": {"logLevel": "DEBUG"}},
        "images": {"policy": "agent", "settings": {"image": "registry.example/agent:4"}},
    }});
    std::fs::write(&values, settings.to_string()).unwrap();
    let values = values.display().to_string();
    let bytes = format!("policies.other-agents.component={}", encoded.display());
    release.helm("install", &["--values", &values, "--set-file", &bytes]).expect();
    release.until_owners_are_known().await;
    let _operator = release.working_operator().await;
    let world = release.world("valued").await;
    world.apply_all(&team()).await;
    let policy = until_active(&release, "other-agents").await;
    until_active(&release, "images").await;
    until_image(&world, AGENT, "registry.example/agent:4").await;
    until_ready(&world, &team()).await;
    let serves = |told: &Value| told["status"]["policy"]["digest"] == policy["spec"]["digest"];
    world.until("the status names the policy", "Agent/a", serves).await;

    // Remove one of the two policies as the guide describes.
    let upgrade = ["upgrade", RELEASE, CHART, "--namespace", SYSTEM, "--wait", "--timeout", "2m"];
    let without = ["--reset-then-reuse-values", "--set", "policies.images=null"];
    release.cluster.helm(&[&upgrade[..], &without].concat()).expect();
    let other_image =
        |it: &Value| it["spec"]["template"]["spec"]["containers"][0]["image"] != "registry.example/agent:4";
    world.until("the settings are gone", AGENT, other_image).await;
    assert!(serves(&world.look("Agent/a").await), "the component still serves");

    release.helm("upgrade", &[]).expect();
    world
        .until("the default policy answers", "Agent/a", |told| {
            told["status"]["policy"]["digest"] != policy["spec"]["digest"]
        })
        .await;
}
