//! Widgets, editions of their policy, and packages of them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use kaos_operator::package::{LABEL, pack};
use kaos_policy::manifest::PolicyFile;
use kaos_tests::harness::kinds::Kind;
use kaos_tests::harness::{Scenario, World};
use serde_json::{Value, json};
use wit_component::ComponentEncoder;

const MARK: &[u8] = b"EDITION=";
const ROOM: usize = 32;

/// The guest as a module, built once a test run.
fn module() -> &'static [u8] {
    static MODULE: OnceLock<Vec<u8>> = OnceLock::new();
    MODULE.get_or_init(|| {
        let guest = Path::new(env!("CARGO_MANIFEST_DIR")).join("guests/widget");
        let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("guests");
        let status = Command::new(env!("CARGO"))
            .args(["build", "--locked", "--quiet", "--release", "--target", "wasm32-unknown-unknown", "--target-dir"])
            .arg(&target)
            .current_dir(guest)
            .env_remove("CARGO_TARGET_DIR")
            .env_remove("RUSTFLAGS")
            .status()
            .unwrap();
        assert!(status.success(), "the guest does not build: is the target wasm32-unknown-unknown installed?");
        std::fs::read(target.join("wasm32-unknown-unknown/release/widget.wasm")).unwrap()
    })
}

/// An edition of the Widgets' policy: a digit, and what it does to fragile Widgets.
pub(crate) fn component(edition: &str) -> Vec<u8> {
    let mut module = module().to_vec();
    let at =
        module.windows(MARK.len()).position(|window| window == MARK).expect("the guest has an edition") + MARK.len();
    let padded = format!("{edition:ROOM$}");
    assert_eq!(padded.len(), ROOM, "the edition is too long");
    module[at..at + ROOM].copy_from_slice(padded.as_bytes());
    ComponentEncoder::default().module(&module).unwrap().validate(true).encode().unwrap()
}

/// A package in the operator's namespace, as `policy pack` makes it. `file` is its policy.yaml.
pub(crate) fn package(name: &str, edition: &str, file: &str) -> Value {
    packed(name, Some(&component(edition)), file)
}

/// A package of settings alone.
pub(crate) fn settings(name: &str, file: &str) -> Value {
    packed(name, None, file)
}

fn packed(name: &str, component: Option<&[u8]>, file: &str) -> Value {
    let file = PolicyFile::parse(file).unwrap();
    let packed = pack(name, "kaos-system", &file, component).unwrap();
    assert!(packed.chunks.is_empty());
    let mut index = serde_json::to_value(&packed.index).unwrap();
    index["apiVersion"] = json!("v1");
    index["kind"] = json!("ConfigMap");
    assert!(index["metadata"]["labels"][LABEL].is_string());
    index
}

/// A Widget.
pub(crate) fn widget(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "test.example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec})
}

/// A Widget in another namespace.
pub(crate) fn widget_in(namespace: &str, name: &str, spec: &Value) -> Value {
    let mut widget = widget(name, spec);
    widget["metadata"]["namespace"] = json!(namespace);
    widget
}

/// The definition of Widgets, which the host has never heard of.
pub(crate) fn definition() -> Value {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.test.example.com"},
        "spec": {"group": "test.example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": any, "status": any}}}}]}})
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
