//! Objects of the KAOS kinds, and other objects that tests need. The objects have no namespace.

use serde_json::{Value, json};

use super::read::text;

const API_VERSION: &str = "kaos.tools/v1alpha1";

fn object(kind: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec})
}

/// Returns a ModelAPI that proxies any model.
pub fn model_api(name: &str) -> Value {
    object("ModelAPI", name, &json!({"mode": "Proxy", "proxyConfig": {"models": ["*"]}}))
}

/// Returns a ModelAPI that proxies these models.
pub fn model_api_for(name: &str, models: &[&str]) -> Value {
    object("ModelAPI", name, &json!({"mode": "Proxy", "proxyConfig": {"models": models}}))
}

/// Returns a `MemoryStore` that has a volume and uses models of this ModelAPI.
pub fn memory_store(name: &str, model_api: &str) -> Value {
    let model = |model: &str| json!({"modelAPI": model_api, "model": model});
    let models = json!({"summarization": model("small"), "embedding": model("vectors")});
    object("MemoryStore", name, &json!({"storage": {"type": "local"}, "models": models}))
}

/// Returns an MCPServer.
pub fn mcp_server(name: &str) -> Value {
    object(
        "MCPServer",
        name,
        &json!({"runtime": "python-string", "params": "def echo(text: str) -> str:\n    return text\n"}),
    )
}

/// Returns an Agent that uses a model of this ModelAPI. `more` adds fields to the spec.
pub fn agent(name: &str, model_api: &str, more: &Value) -> Value {
    let mut agent = object("Agent", name, &json!({"modelAPI": model_api, "model": "gpt-4o"}));
    if let (Some(spec), Some(more)) = (agent["spec"].as_object_mut(), more.as_object()) {
        spec.extend(more.clone());
    }
    agent
}

/// Returns a namespace.
pub fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

/// Returns a CustomResourceDefinition of a kind. The CustomResourceDefinition allows any spec and any status.
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

/// Returns a `ConfigMap`.
pub fn config_map(name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

/// Returns a Secret that contains the texts in `data`.
pub fn secret(name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "type": "Opaque", "stringData": data})
}

/// Returns a volume for a volume claim, because test clusters have no provisioner that would create the volume.
pub fn volume_for(claim: &Value) -> Value {
    let (of, spec) = (&claim["metadata"], &claim["spec"]);
    let name = format!("{}-{}", text(&of["namespace"]), text(&of["name"]));
    json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
        "spec": {"capacity": {"storage": spec["resources"]["requests"]["storage"]}, "accessModes": spec["accessModes"],
            "hostPath": {"path": "/nowhere"}, "storageClassName": "", "persistentVolumeReclaimPolicy": "Delete",
            "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": of["namespace"],
                "name": of["name"]}}})
}

/// Returns a Deployment without an owner.
pub fn deployment(name: &str, image: &str) -> Value {
    let labels = json!({"stranger": name});
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": {
        "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
            "spec": {"containers": [{"name": "main", "image": image}]}}}})
}
