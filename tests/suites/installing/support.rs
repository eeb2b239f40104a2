//! Widgets, editions of their policy, and packages of them.

use kaos_tests::harness::kinds::Kind;
use kaos_tests::harness::{Scenario, World};
use kaos_tests::shipped;
use kaos_tests::widgets::{component, definition};
use serde_json::{Value, json};

pub(crate) use kaos_tests::widgets::widget;

/// A package in the operator's namespace, as `policy pack` makes it. `file` is its policy.yaml.
pub(crate) fn package(name: &str, edition: &str, file: &str) -> Value {
    packed(name, Some(&component(edition).unwrap()), file)
}

/// A package of settings alone.
pub(crate) fn settings(name: &str, file: &str) -> Value {
    packed(name, None, file)
}

/// A package of a component and its policy.yaml.
pub(crate) fn packed(name: &str, component: Option<&[u8]>, file: &str) -> Value {
    shipped::package(name, component, file).unwrap()
}

/// A Widget in another namespace.
pub(crate) fn widget_in(namespace: &str, name: &str, spec: &Value) -> Value {
    let mut widget = widget(name, spec);
    widget["metadata"]["namespace"] = json!(namespace);
    widget
}

/// An operator on the embedded cluster that takes policies from ConfigMaps, without one for Widgets.
pub(crate) fn scenario() -> Scenario {
    Scenario::embedded("it counts what the operator writes").installing(false)
}

/// Defines Widgets.
pub(crate) async fn define(world: &World) {
    world.apply(&definition()).await;
    let name = "CustomResourceDefinition/widgets.test.example.com";
    world
        .until("Widgets are served", name, |crd| kaos_tests::harness::condition(crd, "Established")["status"] == "True")
        .await;
}

/// The revisions of a package, the oldest first.
pub(crate) async fn revisions(world: &World, source: &str) -> Vec<Value> {
    let mut all = world.list_in(Kind::named("PolicyRevision"), "kaos-system").await;
    all.retain(|revision| revision["spec"]["source"]["configMap"] == source);
    all.sort_by_key(|revision| revision["metadata"]["uid"].as_str().map(str::len));
    all.sort_by_key(|revision| {
        revision["metadata"]["resourceVersion"].as_str().and_then(|version| version.parse::<u64>().ok())
    });
    all
}

/// Waits until a revision of a package is in a state; gives it.
pub(crate) async fn until_state(world: &World, source: &str, state: &str) -> Value {
    world
        .until_true(&format!("a revision of {source} is {state}"), async || {
            revisions(world, source).await.iter().any(|revision| revision["status"]["state"] == state)
        })
        .await;
    revisions(world, source).await.into_iter().find(|revision| revision["status"]["state"] == state).unwrap()
}

/// Waits until a Widget was made by an edition.
pub(crate) async fn until_edition(world: &World, config_map: &str, edition: &str) -> Value {
    world
        .until(&format!("{config_map} is of edition {edition}"), config_map, |live| live["data"]["edition"] == edition)
        .await
}
