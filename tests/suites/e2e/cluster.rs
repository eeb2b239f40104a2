//! Checks that the control plane has the properties on which tests rely.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use kaos_tests::control_plane::{ControlPlane, User};
use kaos_tests::harness::World;
use serde_json::{Value, json};

#[test]
fn a_deployment_gets_pods_that_become_ready() {
    let cluster = ControlPlane::shared();
    cluster.kubectl(&["create", "namespace", "pods"]).expect();
    cluster.kubectl(&["-n", "pods", "create", "deployment", "web", "--image=registry.example/web"]).expect();
    cluster.kubectl(&["-n", "pods", "rollout", "status", "deployment/web", "--timeout=60s"]).expect();
}

#[test]
fn a_user_without_rights_is_refused_and_appears_in_the_audit_log() {
    let cluster = ControlPlane::shared();
    let mark = cluster.audit().mark().unwrap();
    let developer = cluster.kubeconfig_for("developer", &User::Developer.token()).unwrap();
    let refused = cluster.kubectl_as(&developer, &["get", "secrets", "-n", "default"]).expect_failure();
    assert!(refused.contains("cannot list resource \"secrets\""), "{refused}");
    let asked = cluster.audit().since(mark, User::Developer.name()).unwrap();
    assert!(asked.iter().any(|r| r.verb == "list" && r.resource == "secrets" && r.code == 403), "{asked:?}");
}

#[tokio::test]
async fn pods_below_the_standard_of_their_namespace_are_refused() {
    let cluster = ControlPlane::shared();
    // Create the namespace together with its label: admission reads namespaces from a cache, so it would notice a later
    // label too late.
    let strict = json!({"pod-security.kubernetes.io/enforce": "restricted"});
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "strict", "labels": strict}});
    let world = World::over(cluster.client().await.unwrap(), "strict");
    world.apply(&namespace).await;
    // Wait for the namespace's ServiceAccount `default`: without it, the API server rejects pods.
    world.until("the namespace has its ServiceAccount", "ServiceAccount/default", Value::is_object).await;
    let run = ["-n", "strict", "run", "web", "--image=registry.example/web"];
    assert!(cluster.kubectl(&run).expect_failure().contains("violates PodSecurity"));
}

#[tokio::test]
async fn a_blocking_owner_reference_needs_the_right_to_the_owners_finalizers() {
    let cluster = ControlPlane::shared();
    cluster.kubectl(&["create", "namespace", "owners"]).expect();
    cluster.kubectl(&["-n", "owners", "create", "configmap", "owner"]).expect();
    let uid =
        cluster.kubectl(&["-n", "owners", "get", "configmap", "owner", "-o", "jsonpath={.metadata.uid}"]).expect();
    cluster.kubectl(&["-n", "owners", "create", "role", "maker", "--verb=create", "--resource=configmaps"]).expect();
    cluster.kubectl(&["-n", "owners", "create", "rolebinding", "maker", "--role=maker", "--user=developer"]).expect();
    let may = async || cluster.may(User::Developer.name(), "create", "configmaps", "owners");
    World::over(cluster.client().await.unwrap(), "owners").until_true("the developer may create ConfigMaps", may).await;
    let child = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "child", "namespace": "owners",
        "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid, "blockOwnerDeletion": true}]}});
    let file = cluster.folder().join("child.json");
    std::fs::write(&file, child.to_string()).unwrap();
    let developer = cluster.kubeconfig_for("developer", &User::Developer.token()).unwrap();
    let create = ["create", "-f", file.to_str().unwrap()];
    let refused = cluster.kubectl_as(&developer, &create).expect_failure();
    assert!(refused.contains("cannot set blockOwnerDeletion"), "{refused}");
}

#[test]
fn a_cluster_that_is_dropped_leaves_no_process_and_no_data() {
    let cluster = ControlPlane::start().unwrap();
    assert_eq!(
        cluster.running().unwrap(),
        ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"]
    );
    let folder = cluster.folder().to_owned();
    drop(cluster);
    assert_eq!(processes_of(folder.to_str().unwrap()), Vec::<String>::new());
    assert!(!folder.join("etcd").exists() && folder.join("log/kube-apiserver.log").exists());
}

#[test]
fn a_cluster_ends_when_its_process_is_killed() {
    let program = env!("CARGO_BIN_EXE_control-plane");
    let mut starter = Command::new(program).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(starter.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let folder = Path::new(line.trim().trim_start_matches("export KUBECONFIG=")).parent().unwrap().to_owned();
    let folder = folder.to_str().unwrap();
    assert!(processes_of(folder).len() >= 5, "{line}");
    starter.kill().unwrap();
    starter.wait().unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    while !processes_of(folder).is_empty() {
        assert!(Instant::now() < deadline, "{:#?}", processes_of(folder));
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Returns the command lines of processes that contain a text.
fn processes_of(text: &str) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(|entry| Some(entry.ok()?.path().join("cmdline")));
    let lines = processes.filter_map(|path| Some(std::fs::read_to_string(path).ok()?.replace('\0', " ")));
    lines.filter(|line| line.contains(text)).collect()
}

#[test]
fn the_server_reports_its_version() {
    let version = ControlPlane::shared().kubectl(&["version", "-o", "json"]).expect();
    let version: Value = serde_json::from_str(&version).unwrap();
    assert!(version["serverVersion"]["gitVersion"].as_str().unwrap().starts_with("v1."), "{version}");
}
