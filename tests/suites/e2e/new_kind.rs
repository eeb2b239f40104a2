//! Adds a kind to a running operator: a CustomResourceDefinition, a policy, and rights.

use kaos_tests::harness::{World, condition};
use kaos_tests::widgets::{definition, widget};
use serde_json::{Value, json};

use crate::support::{CHART, Release, SYSTEM, until, until_active, until_state};

const MADE: &str = "ConfigMap/w";

async fn until_edition(world: &World, edition: &str) -> Value {
    world.until(&format!("{MADE} has the edition {edition}"), MADE, |live| live["data"]["edition"] == edition).await
}

#[tokio::test]
async fn a_new_kind_names_its_missing_rights_and_works_once_they_are_given() {
    let release = Release::install(&[]).await;
    let operator = release.working_operator().await;
    let world = release.world("widgets").await;
    world.apply(&definition()).await;
    release.apply(&release.packed_widgets("1", &["--without-rights"]));
    let waits = until_state(&release, "policy-widget", "NotPermitted").await;
    let message = waits["status"]["message"].as_str().unwrap();
    assert!(message.contains("widgets.test.example.com") && message.contains("list"), "{message}");
    let shown = release.cluster.kubectl(&["get", "policyrevisions", "-n", SYSTEM]).expect();
    assert!(shown.contains("NotPermitted"), "{shown}");
    assert!(operator.is_ready(), "the missing rights do not disturb other policies");

    // Create the object before the operator has the right to read its kind.
    world.apply(&widget("w", &json!({}))).await;
    let file = release.packed_widgets("1", &[]);
    release.apply(&file);
    until_active(&release, "policy-widget").await;
    let made = until_edition(&world, "1").await;
    assert_eq!(made["metadata"]["ownerReferences"][0]["kind"], "Widget");
    world.until_ready("Widget/w").await;

    // The operator recreates the child after its deletion, repairs it after a change, and updates it for another
    // edition of the policy. At the end, the operator prunes the child.
    world.delete(MADE).await;
    until_edition(&world, "1").await;
    world.patch(MADE, &json!({"data": {"size": "many"}})).await;
    world.until("the child is corrected", MADE, |live| live["data"]["size"] == "1").await;
    release.apply(&release.packed_widgets("2", &[]));
    until_edition(&world, "2").await;
    let told = world
        .until("the status names version 2.0.0 of the policy", "Widget/w", |told| {
            told["status"]["policy"]["version"] == "2.0.0"
        })
        .await;
    assert_eq!(condition(&told, "Ready")["status"], "True", "{told}");
    world.delete("Widget/w").await;
    world.until_gone(MADE).await;

    // Remove the policy and its rights, and then the kind.
    release.cluster.kubectl(&["delete", "-f", &file]).expect();
    world.apply(&widget("late", &json!({}))).await;
    release.cluster.kubectl(&["delete", "crd", "widgets.test.example.com"]).expect();
    until("the operator is ready", &operator, || operator.is_ready()).await;
}

#[tokio::test]
async fn with_listed_namespaces_the_rights_of_a_new_kind_are_roles() {
    let release = Release::prepare().await;
    let (world, elsewhere) = (release.world("team-a").await, release.world("elsewhere").await);
    release.world("team-b").await;
    world.apply(&definition()).await;
    release.helm("install", &["--values", &format!("{CHART}/ci/namespaced-values.yaml")]).expect();
    release.until_owners_are_known().await;
    let _operator = release.working_operator().await;
    // This operator serves only listed namespaces, so it needs Roles in these namespaces. The ClusterRole that `policy
    // pack` writes without `--namespaces` does not suffice.
    let for_all = release.packed_widgets("1", &[]);
    release.apply(&for_all);
    let waits = until_state(&release, "policy-widget", "NotPermitted").await;
    let message = waits["status"]["message"].as_str().unwrap();
    let remedy = "`kaos-operator policy pack --namespaces team-a,team-b --service-account NAME`";
    assert!(message.contains(remedy) && message.contains("in team-a"), "{message}");
    release.cluster.kubectl(&["delete", "clusterrole", "kaos-policy-widget"]).expect();

    let account = ["--service-account", "kaos-kaos-operator"];
    let file = release.packed_widgets("1", &[&["--namespaces", "team-a,team-b"], &account[..]].concat());
    release.apply(&file);
    until_active(&release, "policy-widget").await;
    elsewhere.apply(&widget("w", &json!({}))).await;
    world.apply(&widget("w", &json!({}))).await;
    until_edition(&world, "1").await;
    world.until_ready("Widget/w").await;
    assert!(elsewhere.look(MADE).await.is_null());

    release.cluster.kubectl(&["delete", "-f", &file]).expect();
    release.cluster.kubectl(&["delete", "crd", "widgets.test.example.com"]).expect();
}
