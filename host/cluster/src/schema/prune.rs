//! Finds and removes fields that a schema does not contain.

use serde_json::Value;

use super::{
    definitions,
    node::{Node, Shape},
};

/// Removes unknown fields from `value` and returns their paths.
pub(crate) fn prune(value: &mut Value, node: &Node) -> Vec<String> {
    let mut unknown = Vec::new();
    visit(value, node, "", &mut unknown);
    unknown
}

fn visit(value: &mut Value, node: &Node, path: &str, unknown: &mut Vec<String>) {
    match (value, &node.shape) {
        (Value::Object(object), Shape::Map(fields)) => {
            let embedded = |name: &str| node.embedded && matches!(name, "apiVersion" | "kind" | "metadata");
            object.retain(|name, _| {
                let known = fields.known.contains_key(name) || fields.other.is_some() || embedded(name);
                if !known {
                    unknown.push(join(path, name));
                }
                known
            });
            for (name, value) in object.iter_mut() {
                let path = join(path, name);
                match fields.known.get(name).or(fields.other.as_ref()) {
                    _ if name == "metadata" && node.embedded => visit(value, &definitions::METADATA, &path, unknown),
                    Some(field) => visit(value, field, &path, unknown),
                    None => {}
                }
            }
        }
        (Value::Array(items), Shape::List(list)) => {
            for (index, item) in items.iter_mut().enumerate() {
                visit(item, &list.item, &format!("{path}[{index}]"), unknown);
            }
        }
        _ => {}
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::node::Reader;
    use serde_json::json;

    #[test]
    fn unknown_fields_are_pruned_unless_the_schema_preserves_them() {
        let node = Reader::structural().read(&json!({"type": "object", "properties": {
            "known": {"type": "object", "properties": {"a": {"type": "string"}}},
            "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}}}}));
        let mut value =
            json!({"known": {"a": "1", "b": 2}, "open": {"x": {"y": 1}}, "list": [{"a": "1", "z": 1}], "gone": 1});
        let unknown = prune(&mut value, &node);
        assert_eq!(value, json!({"known": {"a": "1"}, "open": {"x": {"y": 1}}, "list": [{"a": "1"}]}));
        assert_eq!(unknown, ["gone", "known.b", "list[0].z"]);
    }
}
