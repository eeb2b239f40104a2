//! Collects the fields that an object sets, and checks that the object can be applied.

use serde_json::Value;

use super::{FieldSet, element};
use crate::schema::{Items, Node, Scalar, Shape, validate};

/// Returns every field that `value` sets.
pub(super) fn fields(value: &Value, node: &Node) -> FieldSet {
    let mut set = FieldSet::default();
    visit(value, node, &mut Vec::new(), &mut set);
    set
}

fn visit(value: &Value, node: &Node, path: &mut Vec<String>, set: &mut FieldSet) {
    match (&node.shape, value) {
        (Shape::Map(fields), Value::Object(object)) if !fields.atomic => {
            for (name, value) in object {
                let known = fields.known.get(name);
                if let Some(field) = known.or(fields.other.as_ref()) {
                    child(name, value, field, known.is_none(), path, set);
                }
            }
        }
        (Shape::Any, Value::Object(object)) => {
            for (name, value) in object {
                child(name, value, &Node::default(), true, path, set);
            }
        }
        (Shape::List(list), Value::Array(items)) if list.items != Items::Atomic => {
            for item in items {
                if let Ok(step) = element::item(item, list) {
                    path.push(step);
                    visit(item, &list.item, path, set);
                    set.insert(path);
                    path.pop();
                }
            }
        }
        _ => set.insert(path),
    }
}

fn child(name: &str, value: &Value, node: &Node, dynamic: bool, path: &mut Vec<String>, set: &mut FieldSet) {
    path.push(element::field(name));
    visit(value, node, path, set);
    let hollow = value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
    if hollow || dynamic {
        set.insert(path);
    }
    path.pop();
}

/// Returns the reason why `value` cannot be applied, or `None` if it can. Possible reasons are a field that is not in
/// the schema, a wrong type, a list item without its key, and a duplicate list item.
pub(super) fn misfit(value: &Value, node: &Node) -> Option<String> {
    let mut found = Vec::new();
    search(value, node, &mut String::new(), &mut found);
    match found.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        many => {
            Some(format!("errors:\n{}", many.iter().map(|text| format!("  {text}")).collect::<Vec<_>>().join("\n")))
        }
    }
}

fn search(value: &Value, node: &Node, path: &mut String, found: &mut Vec<String>) {
    let length = path.len();
    match (&node.shape, value) {
        (_, Value::Null) | (Shape::Any, _) => {}
        (Shape::Scalar(scalar), _) => {
            if validate::mismatch(*scalar, value).is_some() {
                let (wanted, found_type) = (go_name(*scalar), validate::type_name(value));
                found.push(format!("{path}: expected {wanted}, got {found_type}"));
            }
        }
        (Shape::Map(fields), Value::Object(object)) => {
            for (name, value) in object {
                path.push('.');
                path.push_str(name);
                match fields.known.get(name).or(fields.other.as_ref()) {
                    Some(field) => search(value, field, path, found),
                    None => found.push(format!("{path}: field not declared in schema")),
                }
                path.truncate(length);
            }
        }
        (Shape::List(list), Value::Array(items)) => {
            let mut seen = std::collections::BTreeSet::new();
            for (index, item) in items.iter().enumerate() {
                let step = element::item(item, list);
                match (&list.items, step) {
                    (Items::Atomic, _) => {
                        path.push('[');
                        path.push_str(&index.to_string());
                        path.push(']');
                    }
                    (_, Ok(step)) => {
                        let shown = element::display(&step);
                        if !seen.insert(step) {
                            found.push(format!("{path}: duplicate entries for key {shown}"));
                        }
                        path.push_str(&shown);
                    }
                    (_, Err(why)) => {
                        found.push(format!("{path}: element {index}: {why}"));
                        continue;
                    }
                }
                search(item, &list.item, path, found);
                path.truncate(length);
            }
        }
        (Shape::Map(_), _) => {
            found.push(format!("{path}: expected map, got &value.valueUnstructured{{Value:{}}}", go_value(value)));
        }
        (Shape::List(_), _) => {
            found.push(format!("{path}: expected list, got &value.valueUnstructured{{Value:{}}}", go_value(value)));
        }
    }
}

fn go_name(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::String => "string",
        Scalar::Integer | Scalar::Number => "numeric (int or float)",
        Scalar::Boolean => "boolean",
        Scalar::IntOrString | Scalar::StringOrNumber => "string or number",
    }
}

fn go_value(value: &Value) -> String {
    match value {
        Value::Object(_) => "map[string]interface {}{}".into(),
        Value::Array(_) => "[]interface {}{}".into(),
        other => other.to_string(),
    }
}
