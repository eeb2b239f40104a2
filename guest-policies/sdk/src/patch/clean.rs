//! Copies the content of a patch, without directives and nulls, to a path at which the base has no value.

use super::directive::{DIRECTIVE, is_directive};
use serde_json::{Map, Value};

/// Returns the value that `patch` creates. Returns `None` if the patch only deletes.
pub(super) fn fresh(patch: &Value) -> Option<Value> {
    match patch {
        Value::Null => None,
        Value::Object(map) => {
            if map.get(DIRECTIVE).is_some_and(|word| word != "replace" && word != "merge") {
                return None;
            }
            let mut kept = Map::new();
            for (key, value) in map.iter().filter(|(key, _)| !is_directive(key)) {
                if let Some(value) = fresh(value) {
                    kept.insert(key.clone(), value);
                }
            }
            Some(Value::Object(kept))
        }
        Value::Array(items) => Some(items.iter().filter_map(fresh_item).collect()),
        other => Some(other.clone()),
    }
}

/// Like [`fresh`], for an item of a list. Returns `None` for an item with a directive, which is not content.
fn fresh_item(item: &Value) -> Option<Value> {
    if item.get(DIRECTIVE).is_some() { None } else { fresh(item) }
}
