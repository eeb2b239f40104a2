//! What the derived schemas need before they are a good CRD: descriptions that are running text, and `null`
//! accepted only where it says something.

use serde_json::Value;

/// Field and parent. These had a default once, so that the API server took `null` for them; they have none
/// any more, since their absence says something. (An enum cannot take `null` at all.)
const NULLABLE: [(&str, &str); 2] = [("config", "reasoningLoopMaxSteps"), ("telemetry", "enabled")];

pub(crate) fn tidy(mut crd: Value) -> Value {
    if let Some(versions) = crd.pointer_mut("/spec/versions").and_then(Value::as_array_mut) {
        for version in versions {
            schema(&mut version["schema"]["openAPIV3Schema"], "", "");
        }
    }
    crd
}

/// One node of a schema: the field `name` of the field `parent`.
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
    // Kubernetes' own objects (open, with fields named) are as they should be.
    let open = node.get("x-kubernetes-preserve-unknown-fields").is_some() && node.contains_key("type");
    if let Some(Value::Object(fields)) = node.get_mut("properties").filter(|_| !open) {
        for (field, inner) in fields {
            schema(inner, name, field);
        }
    }
}

/// Lines of one paragraph joined.
fn running(text: &str) -> String {
    text.split("\n\n")
        .map(|paragraph| paragraph.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect::<Vec<_>>()
        .join("\n\n")
}
