//! Merges values as Helm and the chart do.

use serde_json::{Value, json};

/// Merges values as Helm does. Maps are merged key by key, a null removes a value, and any other value replaces the
/// earlier value.
pub(super) fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (name, value) in from {
                if value.is_null() {
                    into.remove(&name);
                } else {
                    merge(into.entry(name).or_insert(Value::Null), value);
                }
            }
        }
        (_, Value::Null) => {}
        (into, from) => *into = from,
    }
}

/// Copies the keys of `from` that `into` lacks.
pub(super) fn fill(into: &mut Value, from: &Value) {
    let (Value::Object(into), Value::Object(from)) = (into, from) else { return };
    for (name, value) in from {
        match into.get_mut(name) {
            None => drop(into.insert(name.clone(), value.clone())),
            Some(there) => fill(there, value),
        }
    }
}

/// Sets the value at a path with dots. Creates the maps that the path lacks.
pub(super) fn set(root: &mut Value, path: &str, value: Value) {
    let mut at = root;
    for name in path.split('.') {
        if !at.is_object() {
            *at = json!({});
        }
        at = &mut at[name];
    }
    *at = value;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_values_are_merged_as_helm_merges_them() {
        let mut values = json!({"a": {"b": 1, "c": [1]}, "d": 1});
        merge(&mut values, json!({"a": {"c": [2], "e": 3}, "d": null}));
        assert_eq!(values, json!({"a": {"b": 1, "c": [2], "e": 3}}));
        set(&mut values, "a.f.g", json!(4));
        assert_eq!(values["a"]["f"], json!({"g": 4}));
    }
}
