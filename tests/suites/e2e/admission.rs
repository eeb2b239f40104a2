//! Who may decide what runs.

use kaos_tests::control_plane::User;
use serde_json::{Value, json};

use crate::support::{Release, SYSTEM};

fn policy(name: &str, namespace: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, "labels": {"kaos.tools/policy": "package"}},
        "data": {"policy.yaml": "name: agent\nsettings: {image: registry.example/agent:2}\n"}})
}

#[tokio::test]
async fn a_policy_takes_the_right_to_activate_it_before_and_after_and_a_namespace_goes_with_its_policies() {
    let release = Release::install(&[]).await;
    let cluster = release.cluster;
    let file = |object: &Value| {
        let path = cluster.folder().join("policy.json");
        std::fs::write(&path, object.to_string()).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let bind = |role: &str, namespace: &str| {
        let role = format!("--clusterrole={role}");
        let name = role.replace("--clusterrole=", "developer-");
        cluster.kubectl(&["create", "rolebinding", &name, &role, "--user=developer", "-n", namespace]).expect();
    };
    release.world("own").await;
    bind("edit", SYSTEM);
    bind("edit", "own");
    let kubeconfig = cluster.kubeconfig_for("developer", &User::Developer.token()).unwrap();
    let developer = |arguments: &[&str]| cluster.kubectl_as(&kubeconfig, arguments);

    let company = file(&policy("company", SYSTEM));
    let refused = developer(&["create", "-f", &company]).expect_failure();
    assert!(refused.contains("developer may not activate policies in namespace kaos-system"), "{refused}");
    developer(&["create", "configmap", "plain", "-n", SYSTEM]).expect();
    developer(&["label", "configmap", "plain", "-n", SYSTEM, "some=label"]).expect();
    developer(&["label", "configmap", "plain", "-n", SYSTEM, "kaos.tools/policy=package"]).expect_failure();
    cluster.kubectl(&["create", "-f", &company]).expect();
    // Taking the label off stops a policy, as deleting it does.
    developer(&["label", "configmap", "company", "-n", SYSTEM, "kaos.tools/policy-"]).expect_failure();
    developer(&["delete", "configmap", "company", "-n", SYSTEM]).expect_failure();
    cluster.kubectl(&["create", "-f", &file(&policy("own", "own"))]).expect();

    bind("kaos-kaos-operator-activate-policies", SYSTEM);
    developer(&["label", "configmap", "company", "-n", SYSTEM, "some=label"]).expect();
    developer(&["delete", "configmap", "company", "plain", "-n", SYSTEM]).expect();
    // The right holds where it was given.
    developer(&["delete", "configmap", "own", "-n", "own"]).expect_failure();
    cluster.kubectl(&["delete", "namespace", "own", "--timeout=90s"]).expect();
    let bindings = ["developer-edit", "developer-kaos-kaos-operator-activate-policies"];
    cluster.kubectl(&[&["delete", "rolebinding", "-n", SYSTEM], &bindings[..]].concat()).expect();
}

#[tokio::test]
async fn edit_and_view_cover_the_kinds_and_do_not_let_activate() {
    let release = Release::install(&[]).await;
    let may = |verb: &str, what: &str, role: &str| {
        // An aggregated role is what the controller makes of it.
        let role = release.cluster.kubectl(&["get", "clusterrole", role, "-o", "json"]).expect();
        let role: Value = serde_json::from_str(&role).unwrap();
        role["rules"].as_array().unwrap().iter().any(|rule| {
            let has = |field: &str, word: &str| rule[field].as_array().unwrap().iter().any(|item| item == word);
            has("apiGroups", "kaos.tools") && has("resources", what) && has("verbs", verb)
        })
    };
    let world = release.over(SYSTEM);
    world.until("it is put together", "ClusterRole/edit", |role| role["rules"].to_string().contains("modelapis")).await;
    world.until("it is put together", "ClusterRole/view", |role| role["rules"].to_string().contains("modelapis")).await;
    assert!(may("create", "agents", "edit") && may("get", "agents", "view"));
    assert!(
        !may("create", "agents", "view")
            && !may("activate", "policies", "edit")
            && !may("activate", "policies", "admin")
    );
}
