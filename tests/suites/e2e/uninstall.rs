//! Uninstalls the chart.

use std::collections::BTreeSet;

use kaos_tests::harness::read::{finalizers, text};
use kaos_tests::harness::samples::{agent, model_api};
use kaos_tests::shipped;
use kaos_tests::widgets;
use serde_json::{Value, json};

use crate::support::{CHART, RELEASE, Release, SYSTEM, ending, until, until_active, until_ready, until_state};

/// Returns the names of all objects in the operator's namespace, or of all cluster-scoped objects. The names have
/// kubectl's format. Omits objects that the cluster itself creates and deletes.
fn everything(release: &Release, namespaced: bool) -> BTreeSet<String> {
    let scope = format!("--namespaced={namespaced}");
    let get = || {
        let types = release.cluster.kubectl(&["api-resources", &scope, "--verbs=list", "-o", "name"]).expect();
        let passing = ["events", "events.events.k8s.io", "namespaces"];
        let types: Vec<&str> = types.lines().filter(|of| !passing.contains(of)).collect();
        release.cluster.kubectl(&["get", &types.join(","), "-n", SYSTEM, "-o", "name"])
    };
    // Try again after an error: a type can disappear after kubectl has asked for the types and before it asks for the
    // objects.
    let got = std::iter::repeat_with(get).take(10).find(|got| got.ok).unwrap();
    let of_all = ["configmap/kube-root-ca.crt", "serviceaccount/default"];
    got.out.lines().filter(|name| !of_all.contains(name)).map(str::to_owned).collect()
}

/// Waits until the operator's namespace contains, in addition to objects in `before`, exactly the objects in `wanted`.
async fn until_left(release: &Release, before: &BTreeSet<String>, wanted: impl IntoIterator<Item = String>) {
    let wanted: BTreeSet<String> = wanted.into_iter().collect();
    let more = || -> BTreeSet<String> { everything(release, true).difference(before).cloned().collect() };
    let what = format!("only {wanted:?} is left");
    release.over(SYSTEM).until_true(&what, async || more() == wanted).await;
}

#[tokio::test]
async fn an_uninstall_leaves_no_object_behind_and_none_stuck() {
    let release = Release::prepare().await;
    let (here, in_cluster) = (everything(&release, true), everything(&release, false));
    release.helm("install", &[]).expect();
    release.until_owners_are_known().await;
    let (world, system) = (release.world("left").await, release.over(SYSTEM));
    let objects = [model_api("llm"), agent("a", "llm", &json!({}))];
    world.apply_all(&objects).await;
    let operator = release.working_operator().await;
    // Apply a package of settings, and delete the package again, as a user does.
    system.apply(&shipped::package("brief", None, "{name: agent, settings: {logLevel: DEBUG}}").unwrap()).await;
    until_active(&release, "brief").await;
    system.delete("ConfigMap/brief").await;
    until_state(&release, "brief", "Superseded").await;
    until_ready(&world, &objects).await;
    // Install an edition of the Widgets' policy that adds a finalizer to Widgets.
    let file = release.packed_widgets("1 holds", &[]);
    world.apply(&widgets::definition()).await;
    release.apply(&file);
    world.apply(&widgets::widget("w", &json!({}))).await;
    world.until("Widget/w is held", "Widget/w", |widget| finalizers(widget) == ["test.example.com/hold"]).await;
    let revisions = system.list("PolicyRevision").await;
    let serves = |revision: &&Value| revision["status"]["state"] == "Active";
    let serving: Vec<&str> =
        revisions.iter().filter(serves).map(|revision| text(&revision["metadata"]["name"])).collect();
    assert!(serving.iter().any(|name| name.starts_with("default-agent.")), "{serving:?}");
    system
        .until("the operator has stored its settings", "ConfigMap/kaos-operator-config-fitted", Value::is_object)
        .await;
    let said = release.hook();
    assert!(said.ok && said.out.contains("1 released, 0 failed"), "{said:?}");
    assert!(said.out.contains("removed PolicyRevision kaos-system/brief-"), "{said:?}");
    assert!(!serving.iter().any(|name| said.out.contains(name)), "{said:?}");
    let (code, log) = ending(operator).await;
    assert_eq!(code, Some(1), "the operator keeps writing: {log}");
    assert_eq!(finalizers(&world.look("Widget/w").await), [""; 0]);

    // Add a finalizer of the Go operator, and a finalizer of another controller. No operator reconciles the object
    // before the hook runs.
    let held = json!({"metadata": {"finalizers": ["kaos.tools/agent-finalizer", "example.com/foreign"]}});
    world.patch("Agent/a", &held).await;
    let said = release.hook().expect();
    assert!(said.contains("1 released, 0 failed"), "{said}");
    assert_eq!(finalizers(&world.look("Agent/a").await), ["example.com/foreign"]);
    world.patch("Agent/a", &json!({"metadata": {"finalizers": null}})).await;

    // Delete the policy's ConfigMap like a user, because an uninstall does not delete it. An uninstall also leaves the
    // revisions of active policies, and the ConfigMaps with their bytes.
    release.cluster.kubectl(&["delete", "-f", &file]).expect();
    release.is_changed();
    release.cluster.helm(&["uninstall", RELEASE, "-n", SYSTEM, "--wait"]).expect();
    let lease = "lease.coordination.k8s.io/kaos-operator.kaos.tools".to_owned();
    let records = |name: &&str| [format!("policyrevision.kaos.tools/{name}"), format!("configmap/{name}")];
    let known = serving.iter().flat_map(records).chain([lease.clone()]);
    until_left(&release, &here, known).await;
    release.cluster.kubectl(&["delete", "policyrevisions", "--all", "-n", SYSTEM]).expect();
    until_left(&release, &here, [lease]).await;
    // Without the operator, workloads keep running until users delete the objects that own them.
    assert_eq!(world.look("Deployment/agent-a").await["status"]["readyReplicas"], 1);
    release.cluster.kubectl(&["delete", "agent,modelapi", "--all", "-n", "left", "--timeout=60s"]).expect();
    world.until_gone("Deployment/agent-a").await;
    release.cluster.kubectl(&["delete", "namespace", "left", "--timeout=90s"]).expect();
    release.cluster.kubectl(&["delete", "crd", "widgets.test.example.com"]).expect();
    // Of all cluster-scoped objects of the release, only the CustomResourceDefinitions remain.
    let is_kind = |name: &String| name.ends_with(".kaos.tools");
    let only_kinds = async || everything(&release, false).difference(&in_cluster).all(is_kind);
    system.until_true("only definitions are left in the cluster", only_kinds).await;
}

#[tokio::test]
async fn a_deleted_namespace_blocks_neither_a_restart_nor_the_uninstall() {
    let release = Release::prepare().await;
    let (world, gone) = (release.world("team-a").await, release.world("team-b").await);
    release.helm("install", &["--values", &format!("{CHART}/ci/namespaced-values.yaml")]).expect();
    release.until_owners_are_known().await;
    drop(release.working_operator().await);
    gone.delete("Namespace/team-b").await;
    gone.until_gone("Namespace/team-b").await;
    let operator = release.working_operator().await;
    let says = || operator.get("/readyz").contains("team-b") && operator.log().contains("can read nothing in this");
    until("the operator reports the deleted namespace", &operator, says).await;
    world.apply(&model_api("llm")).await;
    until_ready(&world, &[model_api("llm")]).await;
    drop(operator);
    let said = release.hook();
    assert!(said.ok && said.out.contains("0 released, 0 failed"), "{said:?}");
    assert!(said.err.contains("no object in namespace team-b was released"), "{said:?}");
    // The hook must also succeed after a user deleted the CustomResourceDefinitions.
    release.delete_definitions().await;
    let said = release.hook();
    assert!(said.ok && said.out.contains("no Agent: the cluster does not serve the type"), "{said:?}");
    release.cluster.helm(&["uninstall", RELEASE, "-n", SYSTEM, "--wait"]).expect();
}
