//! Fills in the defaults of a settings schema, as the host does.

use serde_json::{Value, json};

/// Returns the default of every setting in a schema. The host fills in the same defaults.
///
/// # Panics
///
/// Fails the test if the schema is not JSON.
#[allow(clippy::panic, reason = "a test with a broken schema has failed")]
pub fn defaults(schema: &str) -> Value {
    let schema = serde_json::from_str(schema).unwrap_or_else(|error| panic!("the schema of the settings: {error}"));
    of_schema(&schema, &schema).unwrap_or_else(|| json!({}))
}

/// Returns the default of a schema node. Adds the defaults of the properties that the node's own default lacks.
fn of_schema(node: &Value, root: &Value) -> Option<Value> {
    let target = node.get("$ref").and_then(Value::as_str).and_then(|at| root.pointer(at.strip_prefix('#')?));
    let mut default = node.get("default").cloned().or_else(|| of_schema(target?, root));
    for (name, property) in node.get("properties").and_then(Value::as_object).into_iter().flatten() {
        if let Some(inner) = of_schema(property, root) {
            let outer = default.get_or_insert_with(|| json!({}));
            fill(outer, &json!({ name: inner }));
        }
    }
    default
}

/// Adds to `outer` each member that only `inner` has, also in nested objects.
pub(super) fn fill(outer: &mut Value, inner: &Value) {
    if let (Value::Object(outer), Value::Object(inner)) = (outer, inner) {
        for (name, value) in inner {
            match outer.get_mut(name) {
                Some(own) => fill(own, value),
                None => drop(outer.insert(name.clone(), value.clone())),
            }
        }
    }
}
