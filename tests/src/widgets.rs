//! Widgets: a kind that the host has never heard of, and editions of its policy.

use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use wit_component::ComponentEncoder;

const MARK: &[u8] = b"EDITION=";
const ROOM: usize = 32;

/// The guest as a module, built once a run.
fn module() -> Result<&'static [u8]> {
    static MODULE: OnceLock<Vec<u8>> = OnceLock::new();
    if let Some(module) = MODULE.get() {
        return Ok(module);
    }
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let target = tests.join("../target/tmp/guests");
    let status = Command::new(env!("CARGO"))
        .args(["build", "--locked", "--quiet", "--release", "--target", "wasm32-unknown-unknown", "--target-dir"])
        .arg(&target)
        .current_dir(tests.join("guests/widget"))
        .env_remove("CARGO_TARGET_DIR")
        .env_remove("RUSTFLAGS")
        .status()?;
    ensure!(status.success(), "the guest does not build: is the target wasm32-unknown-unknown installed?");
    let module = std::fs::read(target.join("wasm32-unknown-unknown/release/widget.wasm"))?;
    Ok(MODULE.get_or_init(|| module))
}

/// An edition of the Widgets' policy: a digit, and what it does to fragile Widgets.
pub fn component(edition: &str) -> Result<Vec<u8>> {
    let mut module = module()?.to_vec();
    let at = module.windows(MARK.len()).position(|window| window == MARK).context("the guest has no edition")?;
    let padded = format!("{edition:ROOM$}");
    ensure!(padded.len() == ROOM, "the edition {edition:?} is too long");
    module[at + MARK.len()..at + MARK.len() + ROOM].copy_from_slice(padded.as_bytes());
    ComponentEncoder::default().module(&module)?.validate(true).encode()
}

/// A Widget.
pub fn widget(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "test.example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec})
}

/// The definition of Widgets.
pub fn definition() -> Value {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.test.example.com"},
        "spec": {"group": "test.example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": any, "status": any}}}}]}})
}
