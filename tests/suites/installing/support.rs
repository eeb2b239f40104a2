//! Creates Widgets, editions (versions) of the Widgets' policy, and packages with these editions for the tests.

use kaos_cluster::faults::Verb;
use kaos_tests::harness::kinds::Kind;
use kaos_tests::harness::read::{name, uid};
use kaos_tests::harness::requests::Sort;
use kaos_tests::harness::{Scenario, World};
use kaos_tests::shipped;
use kaos_tests::widgets::{component, definition};
use serde_json::{Value, json};

pub(crate) use kaos_tests::harness::samples::namespace;
pub(crate) use kaos_tests::widgets::{widget, widget_in};

/// Returns a package in the operator's namespace, like `policy pack`. `file` is the content of `policy.yaml`.
pub(crate) fn package(name: &str, edition: &str, file: &str) -> Value {
    packed(name, Some(&component(edition).unwrap()), file)
}

/// Returns a package in another namespace.
pub(crate) fn package_in(namespace: &str, name: &str, edition: &str, file: &str) -> Value {
    let mut package = package(name, edition, file);
    package["metadata"]["namespace"] = json!(namespace);
    package
}

/// Returns a package with settings and without a component.
pub(crate) fn settings(name: &str, file: &str) -> Value {
    packed(name, None, file)
}

/// Returns a package with a component and a `policy.yaml`.
pub(crate) fn packed(name: &str, component: Option<&[u8]>, file: &str) -> Value {
    shipped::package(name, component, file).unwrap()
}

/// Returns the ConfigMap `kaos-operator-config` with a setting for the size of Widgets.
pub(crate) fn own_config(size: &str) -> Value {
    own_config_of(&json!({"WIDGET_SIZE": size}))
}

/// Returns the ConfigMap `kaos-operator-config` with these variables.
pub(crate) fn own_config_of(variables: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "data": variables,
        "metadata": {"name": "kaos-operator-config", "namespace": "kaos-system"}})
}

/// Returns a scenario on the embedded cluster. The operator installs policies from ConfigMaps, and has no policy for
/// Widgets.
pub(crate) fn scenario() -> Scenario {
    Scenario::embedded("the test counts the operator's writes").installing(false)
}

/// Installs the CustomResourceDefinition of Widgets.
pub(crate) async fn define(world: &World) {
    world.apply(&definition()).await;
    let name = "CustomResourceDefinition/widgets.test.example.com";
    world
        .until("Widgets are served", name, |crd| kaos_tests::harness::condition(crd, "Established")["status"] == "True")
        .await;
}

/// Installs the CustomResourceDefinition of Widgets, and creates the Widget `w`. No policy serves this Widget yet.
pub(crate) async fn widget_waits(world: &World) {
    define(world).await;
    world.apply(&widget("w", &json!({}))).await;
}

/// Installs the CustomResourceDefinition of Widgets, and creates the Widget `w`. Waits until the first edition, in the
/// package `widgets`, serves the Widget.
pub(crate) async fn first_edition_serves(world: &World, spec: &Value) {
    define(world).await;
    world.apply(&package("widgets", "1", "")).await;
    world.apply(&widget("w", spec)).await;
    until_edition(world, "ConfigMap/w", "1").await;
}

/// Installs the CustomResourceDefinition of Widgets, and creates the Widget `w` in the namespace `test`. Waits until
/// this namespace's own policy, the first edition, serves the Widget. The namespace's own policy wins over the third
/// edition, which serves the rest of the cluster.
pub(crate) async fn own_edition_serves(world: &World) {
    define(world).await;
    world.apply(&package("widgets", "3", "")).await;
    world.apply(&package_in("test", "own", "1", "")).await;
    world.apply(&widget("w", &json!({}))).await;
    until_edition(world, "ConfigMap/w", "1").await;
    until_state(world, "own", "Active").await;
    world.quiet().await;
}

/// Creates two Widgets that the first edition serves. Then installs the second edition, which traps on the Widget
/// `fragile` and serves the Widget `sturdy`.
pub(crate) async fn next_edition_traps_on_one(world: &World) {
    define(world).await;
    world.apply(&package("widgets", "1", "")).await;
    world.apply(&widget("fragile", &json!({"fragile": true}))).await;
    world.apply(&widget("sturdy", &json!({}))).await;
    until_edition(world, "ConfigMap/fragile", "1").await;
    world.apply(&package("widgets", "2 traps", "")).await;
    until_edition(world, "ConfigMap/sturdy", "2").await;
}

/// Returns the revisions of a package. The oldest revision is first.
pub(crate) async fn revisions(world: &World, source: &str) -> Vec<Value> {
    let mut all = world.list_in(Kind::named("PolicyRevision"), "kaos-system").await;
    all.retain(|revision| revision["spec"]["source"]["configMap"] == source);
    all.sort_by_key(|revision| revision["metadata"]["uid"].as_str().map(str::len));
    all.sort_by_key(|revision| {
        revision["metadata"]["resourceVersion"].as_str().and_then(|version| version.parse::<u64>().ok())
    });
    all
}

/// Returns the states of a package's revisions.
pub(crate) async fn states(world: &World, source: &str) -> Vec<String> {
    let all = revisions(world, source).await;
    all.iter().filter_map(|revision| revision["status"]["state"].as_str().map(str::to_owned)).collect()
}

/// Waits until a package has a revision in this state. Returns the revision.
pub(crate) async fn until_state(world: &World, source: &str, state: &str) -> Value {
    world
        .until_true(&format!("a revision of {source} is {state}"), async || {
            revisions(world, source).await.iter().any(|revision| revision["status"]["state"] == state)
        })
        .await;
    revisions(world, source).await.into_iter().find(|revision| revision["status"]["state"] == state).unwrap()
}

/// Returns the names of the ConfigMaps that the operator has read in a namespace since the journal was cleared. A name
/// appears once for each read.
pub(crate) fn read_in(world: &World, namespace: &str) -> Vec<String> {
    let asked = world.requests(Sort::Read).into_iter().map(|entry| entry.attempt);
    let read = asked.filter(|it| it.verb == Verb::Get && it.resource == "configmaps" && it.namespace == namespace);
    let mut names: Vec<String> = read.map(|it| it.name).collect();
    names.sort_unstable();
    names
}

/// Requests a retry of a revision.
pub(crate) async fn retry(world: &World, revision: &Value) {
    let at = format!("kaos-system:PolicyRevision/{}", name(revision));
    world.patch(&at, &json!({"metadata": {"annotations": {"kaos.tools/retry": "please"}}})).await;
}

/// Approves a held revision as this user.
///
/// The approval applies to the hold that `revision` shows: if the operator has held the revision again since then, the
/// approval has no effect.
pub(crate) async fn approve(world: &World, revision: &Value, user: &str) {
    let (at, hold) = (format!("kaos-system:PolicyRevision/{}", name(revision)), &revision["status"]["since"]);
    let annotations = json!({"kaos.tools/approved-by": user, "kaos.tools/approved-for": hold});
    world.patch(&at, &json!({"metadata": {"annotations": annotations}})).await;
}

/// Restarts the operator on a settled cluster. Asserts that the new operator writes nothing.
pub(crate) async fn restart_writes_nothing(world: &World) {
    world.forget_requests();
    world.restart().await;
    world.quiet().await;
    assert_eq!(world.writes(), [""; 0], "a settled cluster does not change");
}

/// Waits until a Widget's ConfigMap contains this edition. Returns the ConfigMap.
pub(crate) async fn until_edition(world: &World, config_map: &str, edition: &str) -> Value {
    world
        .until(&format!("{config_map} is of edition {edition}"), config_map, |live| live["data"]["edition"] == edition)
        .await
}

/// Waits until the operator has recreated the PolicyRevision of an active revision after a user deleted it.
pub(crate) async fn until_written_again(world: &World, source: &str, record: &Value) {
    let is_new = |it: &Value| uid(it) != uid(record) && it["status"]["state"] == "Active";
    world
        .until_true("the operator has written the record again", async || {
            revisions(world, source).await.iter().any(is_new)
        })
        .await;
}
