//! Tests the installation by a user who is an administrator only of namespaces, after a cluster administrator has given
//! the operator its rights. The test runs the commands of the page `docs/guide/install.md`.

use kaos_tests::blocks::blocks;
use kaos_tests::control_plane::User;
use kaos_tests::harness::samples::{agent, model_api};
use serde_json::json;

use crate::support::{Release, SYSTEM, until_ready};

const PAGE: &str = "docs/guide/install.md";
const NAMESPACES: [&str; 3] = [SYSTEM, "team-a", "team-b"];

/// Objects that a user created without Helm. Dropping this value deletes these objects with kubectl.
struct ByHand<'a> {
    release: &'a Release,
    commands: String,
}

impl Drop for ByHand<'_> {
    fn drop(&mut self) {
        let rights = "create rolebinding policy-makers --role=kaos-kaos-operator-activate-policies --user=developer";
        let undo = self.commands.replace("kubectl apply --server-side", "kubectl delete --ignore-not-found");
        let undo = undo.replace(rights, "delete rolebinding policy-makers developer-admin --ignore-not-found");
        let first = "helm uninstall kaos --namespace kaos-system --no-hooks --ignore-not-found\n";
        self.release.cluster.shell(&format!("{first}{undo}"));
    }
}

#[tokio::test]
async fn namespace_admins_install_the_operator_after_a_cluster_admin_gave_the_rights() {
    let release = Release::prepare().await;
    // Delete the CustomResourceDefinitions of earlier tests. Otherwise the chart would read ModelAPIs, and the
    // installation would fail, because the developer may not read ModelAPIs.
    release.delete_definitions().await;
    let cluster = release.cluster;
    let world = release.world("team-a").await;
    release.world("team-b").await;
    let by_hand = ByHand { release: &release, commands: blocks(PAGE, &["administrator"]).unwrap().concat() };
    for namespace in NAMESPACES {
        let binding = ["create", "rolebinding", "developer-admin", "--clusterrole=admin", "--user=developer"];
        cluster.kubectl(&[&binding[..], &["-n", namespace]].concat()).expect();
    }
    let may = |verb: &str, what: &str, namespace: &str| cluster.may(User::Developer.name(), verb, what, namespace);
    let is_admin =
        async || NAMESPACES.iter().all(|namespace| may("create", "roles.rbac.authorization.k8s.io", namespace));
    world.until_true("the developer is admin of the namespaces", is_admin).await;
    let kubeconfig = cluster.kubeconfig_for("developer", &User::Developer.token()).unwrap();
    let developer = |commands: &str| cluster.shell(&format!("export KUBECONFIG={}\n{commands}", kubeconfig.display()));

    let flags = "--set 'watchNamespaces={team-a,team-b}' --set crds.install=false,admissionPolicy.enabled=false";
    let alone = format!("helm install kaos deploy/helm/kaos-operator --namespace kaos-system {flags}");
    let refused = developer(&alone).expect_failure();
    assert!(refused.contains("attempting to grant RBAC permissions not currently held"), "{refused}");
    developer("helm uninstall kaos --namespace kaos-system --no-hooks").expect();

    cluster.shell(&by_hand.commands).expect();
    release.until_owners_are_known().await;
    let may_activate = async || may("activate", "policies.kaos.tools", SYSTEM);
    world.until_true("the developer may decide what runs", may_activate).await;
    for block in blocks(PAGE, &["installer"]).unwrap() {
        developer(&block).expect();
    }
    let operator = release.working_operator().await;
    let team = [model_api("llm"), agent("a", "llm", &json!({}))];
    world.apply_all(&team).await;
    until_ready(&world, &team).await;
    drop(operator);
}
