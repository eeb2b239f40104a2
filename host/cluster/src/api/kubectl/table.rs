//! Renders tables, the output of `kubectl get`.

mod age;
mod columns;
mod head;
mod workloads;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{api::metadata_of, catalogue::Resource};

/// Renders objects as a table. `include` is the value of the query parameter `includeObject`. In a watch, only the
/// first event contains column definitions.
pub(crate) fn render(
    resource: &Resource,
    items: &[impl AsRef<Value>],
    metadata: &Value,
    include: &str,
    heads: bool,
    now: Timestamp,
) -> Value {
    let rows: Vec<Value> = items
        .iter()
        .map(|item| {
            let item = item.as_ref();
            let object = match include {
                "None" => Value::Null,
                "Object" => item.clone(),
                _ => metadata_of(item),
            };
            json!({"cells": columns::cells(resource, item, now), "object": object})
        })
        .collect();
    let definitions: Vec<Value> = columns::heads(resource)
        .into_iter()
        .map(|head| {
            json!({"name": head.name, "type": head.type_, "format": head.format, "description": head.description,
                "priority": head.priority})
        })
        .collect();
    json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
        "columnDefinitions": if heads { json!(definitions) } else { Value::Null }, "rows": rows})
}
