//! Widgets: a kind that the host does not know, and editions of its policy.

use std::sync::OnceLock;

use anyhow::Result;
use serde_json::{Value, json};

use crate::guests;
use crate::harness::samples;

/// The guest as a module, built once per process.
fn module() -> Result<&'static [u8]> {
    static MODULE: OnceLock<Vec<u8>> = OnceLock::new();
    if let Some(module) = MODULE.get() {
        return Ok(module);
    }
    let module = guests::build("tests/guests/widget", &[], "widget.wasm")?;
    Ok(MODULE.get_or_init(|| module))
}

/// An edition of the Widgets' policy. `edition` is a digit, and a word for the special behaviour. Most words say how
/// the edition fails on fragile Widgets. An edition with `and kites` also claims Kites. The plan of an edition that
/// `breaks at 5` is invalid at that size. The behaviour `keeps` adds a second ConfigMap, and traps on fragile Widgets.
pub fn component(edition: &str) -> Result<Vec<u8>> {
    guests::component(&guests::told(module()?, "EDITION=", 32, edition)?)
}

/// A Widget.
pub fn widget(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "test.example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec})
}

/// A Widget in a namespace.
pub fn widget_in(namespace: &str, name: &str, spec: &Value) -> Value {
    let mut widget = widget(name, spec);
    widget["metadata"]["namespace"] = json!(namespace);
    widget
}

/// The definition of Widgets.
pub fn definition() -> Value {
    samples::definition("test.example.com", "widgets", "Widget")
}
