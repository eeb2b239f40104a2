//! A rendered object as one JSON document: the form of `render -o json`.

use serde_json::{Map, Value, json};

use super::{Rendered, Verdict};
use crate::contract::{Blocker, EnvSource, EnvVar, KeySelector, Refusal};

impl Rendered {
    /// The document. `status` is what the operator would write, where that was worked out.
    pub fn document(&self, status: Option<&Value>) -> Value {
        let Self { object, policy, fuel, .. } = self;
        json!({
            "object": {
                "apiVersion": object.api_version,
                "kind": object.kind,
                "namespace": object.namespace,
                "name": object.name,
            },
            "policy": policy,
            "overlays": self.overlays,
            "fuel": fuel,
            "env": self.env().iter().map(env_entry).collect::<Vec<_>>(),
            "manifests": self.manifests(),
            "gates": self.gates().iter().map(gate).collect::<Vec<_>>(),
            "refused": match &self.verdict {
                Verdict::Planned(_) => Value::Null,
                Verdict::Refused(refusal) => refused(refusal),
                Verdict::Failed(failure) => json!({
                    "reason": failure.failure.category(),
                    "messages": [{"path": "", "message": failure.to_string()}],
                }),
            },
            "notes": self.notes(),
            "status": status.cloned().unwrap_or_else(|| json!({})),
        })
    }
}

impl EnvVar {
    /// The variable as an entry of a container's `env`.
    pub fn entry(&self) -> Value {
        let selector = |KeySelector { name, key, optional }: &KeySelector| {
            let mut selector = json!({ "name": name, "key": key });
            if *optional {
                selector["optional"] = json!(true);
            }
            selector
        };
        let (field, value) = match &self.source {
            EnvSource::Literal(value) => ("value", json!(value)),
            EnvSource::SecretKey(key) => ("valueFrom", json!({ "secretKeyRef": selector(key) })),
            EnvSource::ConfigMapKey(key) => ("valueFrom", json!({ "configMapKeyRef": selector(key) })),
            EnvSource::FieldPath(path) => ("valueFrom", json!({ "fieldRef": { "fieldPath": path } })),
            EnvSource::Other(text) => ("valueFrom", serde_json::from_str(text).unwrap_or(Value::Null)),
        };
        let mut entry = Map::new();
        entry.insert("name".to_owned(), json!(self.name));
        entry.insert(field.to_owned(), value);
        Value::Object(entry)
    }
}

fn env_entry(var: &EnvVar) -> Value {
    let mut entry = var.entry();
    entry["container"] = json!(var.container);
    entry["origin"] = json!(var.origin);
    entry
}

fn gate(Blocker { on, reason, message }: &Blocker) -> Value {
    json!({ "on": on, "reason": reason, "message": message })
}

fn refused(refusal: &Refusal) -> Value {
    let messages: Vec<Value> = match refusal {
        Refusal::Invalid(violations) => violations.iter().map(|violation| json!(violation)).collect(),
        Refusal::Waiting(blockers) => {
            let message = |blocker: &Blocker| json!({ "path": blocker.on.to_string(), "message": blocker.message });
            blockers.iter().map(message).collect()
        }
        Refusal::Unsupported(message) => vec![json!({ "path": "", "message": message })],
    };
    json!({ "reason": refusal.reason(), "messages": messages })
}
