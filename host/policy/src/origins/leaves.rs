//! Splits a value into its leaves.

use serde_json::Value;

use super::PathStep;

/// Returns every leaf of a value with the path to it. A leaf is a text, a number, a boolean, an empty list or an empty
/// object. Leaves out nulls.
pub(crate) fn leaves(value: &Value) -> Vec<(Vec<PathStep>, &Value)> {
    let mut all = Vec::new();
    walk(value, &mut Vec::new(), &mut all);
    all
}

fn walk<'a>(value: &'a Value, path: &mut Vec<PathStep>, all: &mut Vec<(Vec<PathStep>, &'a Value)>) {
    match value {
        Value::Null => {}
        Value::Object(fields) if !fields.is_empty() => {
            for (name, value) in fields {
                path.push(PathStep::Name(name.clone()));
                walk(value, path, all);
                path.pop();
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (i, value) in items.iter().enumerate() {
                path.push(PathStep::Index(i));
                walk(value, path, all);
                path.pop();
            }
        }
        leaf => all.push((path.clone(), leaf)),
    }
}
