//! Content of a patch that has nothing below it: taken over without directives and nulls.

use super::directive::{DIRECTIVE, is_directive};
use serde_json::{Map, Value};

/// What `patch` puts where nothing was; none where it only says that something is to go.
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

/// As [`fresh`], for an item of a list: one with a directive is an instruction, not content.
fn fresh_item(item: &Value) -> Option<Value> {
    if item.get(DIRECTIVE).is_some() { None } else { fresh(item) }
}
