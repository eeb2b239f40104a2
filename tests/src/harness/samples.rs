//! Objects of the KAOS kinds and others that tests need, without a namespace.

use serde_json::{Value, json};

const API_VERSION: &str = "kaos.tools/v1alpha1";

fn object(kind: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec})
}

/// A ModelAPI that proxies any model.
pub fn model_api(name: &str) -> Value {
    object("ModelAPI", name, &json!({"mode": "Proxy", "proxyConfig": {"models": ["*"]}}))
}

/// A ModelAPI that proxies these models.
pub fn model_api_for(name: &str, models: &[&str]) -> Value {
    object("ModelAPI", name, &json!({"mode": "Proxy", "proxyConfig": {"models": models}}))
}

/// A `MemoryStore` with a volume, whose models come from this ModelAPI.
pub fn memory_store(name: &str, model_api: &str) -> Value {
    let model = |model: &str| json!({"modelAPI": model_api, "model": model});
    let models = json!({"summarization": model("small"), "embedding": model("vectors")});
    object("MemoryStore", name, &json!({"storage": {"type": "local"}, "models": models}))
}

/// An MCPServer.
pub fn mcp_server(name: &str) -> Value {
    object(
        "MCPServer",
        name,
        &json!({"runtime": "python-string", "params": "def echo(text: str) -> str:\n    return text\n"}),
    )
}

/// An Agent with a model of this ModelAPI; `more` goes into its spec.
pub fn agent(name: &str, model_api: &str, more: &Value) -> Value {
    let mut agent = object("Agent", name, &json!({"modelAPI": model_api, "model": "gpt-4o"}));
    if let (Some(spec), Some(more)) = (agent["spec"].as_object_mut(), more.as_object()) {
        spec.extend(more.clone());
    }
    agent
}

/// A namespace.
pub fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

/// A definition of a kind with an arbitrary spec and status.
pub fn definition(group: &str, plural: &str, kind: &str) -> Value {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let (singular, list) = (kind.to_lowercase(), format!("{kind}List"));
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {"group": group, "scope": "Namespaced",
            "names": {"plural": plural, "singular": singular, "kind": kind, "listKind": list},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": any, "status": any}}}}]}})
}

/// A `ConfigMap`.
pub fn config_map(name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

/// A Secret with these texts.
pub fn secret(name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "type": "Opaque", "stringData": data})
}

/// A Deployment without an owner.
pub fn deployment(name: &str, image: &str) -> Value {
    let labels = json!({"stranger": name});
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": {
        "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
            "spec": {"containers": [{"name": "main", "image": image}]}}}})
}
