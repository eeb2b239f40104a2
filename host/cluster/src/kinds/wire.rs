//! Changes an object as if the server converted it to Go's types and back. Removes nulls, some zeros, and empty lists,
//! maps and texts. Writes quantities in their canonical form.

use serde_json::Value;

use crate::schema::{Node, Scalar, Shape};

/// Fields with a number or a boolean whose type in Go is not a pointer. Go omits such a field if it is zero or false.
const PLAIN: [&str; 25] = [
    "readOnly",
    "stdin",
    "stdinOnce",
    "tty",
    "hostNetwork",
    "hostPID",
    "hostIPC",
    "hostPort",
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
    "nodePort",
    "publishNotReadyAddresses",
    "paused",
    "minReadySeconds",
    "preferredDuringScheduling",
    "count",
    "deprecatedCount",
    "unavailableReplicas",
    "updatedReplicas",
    "readyReplicas",
    "availableReplicas",
    "fullyLabeledReplicas",
];

/// Changes an object of a built-in kind as if the server converted it to Go's types and back.
pub(super) fn tidy(value: &mut Value, node: &Node) {
    match (value, &node.shape) {
        (Value::Object(object), Shape::Map(fields)) => {
            for (name, value) in object.iter_mut() {
                if let Some(field) = fields.known.get(name).or(fields.other.as_ref()) {
                    tidy(value, field);
                }
            }
            object.retain(|name, value| match fields.known.get(name) {
                Some(field) => !vanishes(name, value, field, fields.required.contains(name)),
                None => !value.is_null() || fields.other.as_ref().is_some_and(|other| other.keeps_unknown),
            });
        }
        (Value::Array(items), Shape::List(list)) => items.iter_mut().for_each(|item| tidy(item, &list.item)),
        (value, Shape::Scalar(Scalar::StringOrNumber)) if node.quantity => {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            if let Some(canonical) = kaos_amounts::canonical(&text) {
                *value = Value::String(canonical);
            }
        }
        _ => {}
    }
}

fn vanishes(name: &str, value: &Value, node: &Node, required: bool) -> bool {
    match value {
        Value::Null => name != "lastProbeTime",
        Value::Array(items) => items.is_empty() && !required && name != "subsets",
        Value::Object(object) => {
            let is_map = matches!(&node.shape, Shape::Map(fields) if fields.known.is_empty() && fields.other.is_some());
            object.is_empty() && is_map
        }
        Value::String(text) => text.is_empty() && !required && node.default.is_none(),
        Value::Bool(false) => PLAIN.contains(&name),
        Value::Number(number) => number.as_i64() == Some(0) && !required && PLAIN.contains(&name),
        Value::Bool(true) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::definitions;
    use serde_json::json;

    #[test]
    fn zero_values_that_go_omits_vanish_and_pointers_stay() {
        let node = definitions::read("io.k8s.api.core.v1.Container");
        let mut container = json!({"name": "a", "args": [], "tty": false, "command": null, "resources": {"limits": {"cpu": "1000m"}},
            "env": [{"name": "E", "value": ""}], "securityContext": {"runAsNonRoot": false}, "livenessProbe": {"initialDelaySeconds": 0}});
        tidy(&mut container, &node);
        assert_eq!(
            container,
            json!({"name": "a", "resources": {"limits": {"cpu": "1"}}, "env": [{"name": "E"}],
                "securityContext": {"runAsNonRoot": false}, "livenessProbe": {}})
        );
    }
}
