//! Builds Widgets, and editions of their policy, for tests. No default policy claims the kind Widget. An edition is a
//! version of the policy.

use std::sync::OnceLock;

use anyhow::Result;
use serde_json::{Value, json};

use crate::guests;
use crate::harness::samples;

/// Returns the policy of Widgets as a Wasm module. Builds the module only once in each process.
fn module() -> Result<&'static [u8]> {
    static MODULE: OnceLock<Vec<u8>> = OnceLock::new();
    if let Some(module) = MODULE.get() {
        return Ok(module);
    }
    let module = guests::build("tests/guests/widget", &[], "widget.wasm")?;
    Ok(MODULE.get_or_init(|| module))
}

/// Returns an edition of the Widgets' policy, as a component. `edition` is a digit for the version, and a word for
/// special behaviour. Most words make the edition fail on fragile Widgets (`fragile: true`). With `and kites`, the
/// policy also claims Kites. With `breaks at N`, where N is a digit, the policy makes an invalid plan for size N. With
/// `keeps`, the policy adds a second ConfigMap, and traps on fragile Widgets. With `renames`, the ConfigMap has the
/// value of the first edition under another key, and the policy refuses fragile Widgets.
pub fn component(edition: &str) -> Result<Vec<u8>> {
    guests::component(&guests::told(module()?, "EDITION=", 32, edition)?)
}

/// Returns a Widget.
pub fn widget(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "test.example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec})
}

/// Returns a Widget in a namespace.
pub fn widget_in(namespace: &str, name: &str, spec: &Value) -> Value {
    let mut widget = widget(name, spec);
    widget["metadata"]["namespace"] = json!(namespace);
    widget
}

/// Returns the CustomResourceDefinition of Widgets.
pub fn definition() -> Value {
    samples::definition("test.example.com", "widgets", "Widget")
}
