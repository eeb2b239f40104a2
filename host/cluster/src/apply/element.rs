//! One element of a path: a field, a keyed list item, or a value of a set.

use serde_json::{Map, Value};

use crate::schema::{Items, List};

/// Returns the path element of a field.
pub(super) fn field(name: &str) -> String {
    format!("f:{name}")
}

/// Returns the path element of an item in a set or a keyed list. If a key is missing, the error names the key.
pub(super) fn item(item: &Value, list: &List) -> Result<String, String> {
    match &list.items {
        Items::Atomic => Err("an atomic list has no items of its own".into()),
        Items::Set => Ok(format!("v:{item}")),
        Items::Keyed(keys) => {
            let mut found = Map::new();
            for key in keys {
                let value =
                    item.get(key).cloned().or_else(|| list.item.field(key).and_then(|node| node.default.clone()));
                let Some(value) = value else {
                    return Err(format!(
                        "associative list with keys has an element that omits key field \"{key}\" (and doesn't have default value)"
                    ));
                };
                found.insert(key.clone(), value);
            }
            Ok(format!("k:{}", Value::Object(found)))
        }
    }
}

/// Formats a path element for messages.
pub(super) fn display(step: &str) -> String {
    match step.split_once(':') {
        Some(("f", name)) => format!(".{name}"),
        Some(("v", value)) => format!("[={value}]"),
        Some(("k", keys)) => {
            let keys: Map<String, Value> = serde_json::from_str(keys).unwrap_or_default();
            let parts: Vec<String> = keys.iter().map(|(key, value)| format!("{key}={value}")).collect();
            format!("[{}]", parts.join(","))
        }
        Some((_, index)) => format!("[{index}]"),
        None => step.to_owned(),
    }
}
