//! Defaults of a structural schema: adds defaults for absent fields, and replaces nulls that the schema does not allow.

use serde_json::Value;

use super::node::{Node, Shape};

/// Adds the defaults of `node` to `value`.
pub(crate) fn fill(value: &mut Value, node: &Node) {
    match (value, &node.shape) {
        (Value::Object(object), Shape::Map(fields)) => {
            for (name, field) in &fields.known {
                let absent = object.get(name).is_none_or(|value| value.is_null() && !field.nullable);
                if let (true, Some(default)) = (absent, &field.default) {
                    object.insert(name.clone(), default.clone());
                }
            }
            for (name, value) in object.iter_mut() {
                if let Some(field) = fields.known.get(name).or(fields.other.as_ref()) {
                    if let (Value::Null, false, Some(default)) = (&*value, field.nullable, &field.default) {
                        *value = default.clone();
                    }
                    fill(value, field);
                }
            }
        }
        (Value::Array(items), Shape::List(list)) => items.iter_mut().for_each(|item| fill(item, &list.item)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::node::Reader;
    use serde_json::json;

    #[test]
    fn defaults_apply_inside_existing_objects_only() {
        let node = Reader::structural().read(&json!({"type": "object", "properties": {
            "a": {"type": "object", "default": {}, "properties": {"x": {"type": "integer", "default": 3}}},
            "b": {"type": "object", "properties": {"x": {"type": "integer", "default": 3}}},
            "c": {"type": "string", "default": "y"},
            "d": {"type": "string", "nullable": true, "default": "y"},
            "l": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "integer", "default": 3}}}}}}));
        let mut value = json!({"c": null, "d": null, "l": [{}, {"x": 1}]});
        fill(&mut value, &node);
        assert_eq!(value, json!({"a": {"x": 3}, "c": "y", "d": null, "l": [{"x": 3}, {"x": 1}]}));
    }
}
