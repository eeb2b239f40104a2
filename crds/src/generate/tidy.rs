//! Corrects the derived schemas: joins the lines of descriptions, and accepts `null` only in fields where `null` has a
//! meaning.

use serde_json::Value;

/// Fields that accept `null`, each with its parent. These fields used to have a default, so the API server accepted
/// `null`. The fields have no default now, because an absent field has a meaning of its own. Fields with an enum are
/// not in this list, because the schema of an enum cannot accept `null`.
const NULLABLE: [(&str, &str); 2] = [("config", "reasoningLoopMaxSteps"), ("telemetry", "enabled")];

pub(crate) fn tidy(mut crd: Value) -> Value {
    if let Some(versions) = crd.pointer_mut("/spec/versions").and_then(Value::as_array_mut) {
        for version in versions {
            schema(&mut version["schema"]["openAPIV3Schema"], "", "");
        }
    }
    crd
}

/// Corrects one node of a schema: the schema of the field `name` in the field `parent`.
fn schema(node: &mut Value, parent: &str, name: &str) {
    let Some(node) = node.as_object_mut() else { return };
    if let Some(Value::String(text)) = node.get_mut("description") {
        *text = running(text);
    }
    if !NULLABLE.contains(&(parent, name)) {
        node.remove("nullable");
    }
    if let Some(items) = node.get_mut("items") {
        schema(items, parent, name);
    }
    // Leave Kubernetes' own objects unchanged: their schemas are open and list the fields only as an explanation.
    let open = node.get("x-kubernetes-preserve-unknown-fields").is_some() && node.contains_key("type");
    if let Some(Value::Object(fields)) = node.get_mut("properties").filter(|_| !open) {
        for (field, inner) in fields {
            schema(inner, name, field);
        }
    }
}

/// Joins the lines of each paragraph.
fn running(text: &str) -> String {
    text.split("\n\n")
        .map(|paragraph| paragraph.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect::<Vec<_>>()
        .join("\n\n")
}
