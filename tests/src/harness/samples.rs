//! Objects of the KAOS kinds, without a namespace.

use serde_json::{Value, json};

const API_VERSION: &str = "kaos.tools/v1alpha1";

fn object(kind: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec})
}

/// A proxy for any model.
pub fn model_api(name: &str) -> Value {
    object("ModelAPI", name, &json!({"mode": "Proxy", "proxyConfig": {"models": ["*"]}}))
}

/// A proxy for these models.
pub fn model_api_for(name: &str, models: &[&str]) -> Value {
    object("ModelAPI", name, &json!({"mode": "Proxy", "proxyConfig": {"models": models}}))
}

/// A server of tools.
pub fn mcp_server(name: &str) -> Value {
    object(
        "MCPServer",
        name,
        &json!({"runtime": "python-string", "params": "def echo(text: str) -> str:\n    return text\n"}),
    )
}

/// An agent on a model; `more` goes into its spec.
pub fn agent(name: &str, model_api: &str, more: &Value) -> Value {
    let mut agent = object("Agent", name, &json!({"modelAPI": model_api, "model": "gpt-4o"}));
    if let (Some(spec), Some(more)) = (agent["spec"].as_object_mut(), more.as_object()) {
        spec.extend(more.clone());
    }
    agent
}

/// A `ConfigMap`.
pub fn config_map(name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

/// A Secret from plain texts.
pub fn secret(name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "type": "Opaque", "stringData": data})
}

/// A Deployment that nobody owns.
pub fn deployment(name: &str, image: &str) -> Value {
    let labels = json!({"stranger": name});
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": {
        "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
            "spec": {"containers": [{"name": "main", "image": image}]}}}})
}
