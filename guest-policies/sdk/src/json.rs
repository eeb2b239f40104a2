//! Writes JSON in the contract's canonical form, with sorted keys.
//!
//! `serde_json` already sorts keys if its feature `preserve_order` is disabled, because its map is then a `BTreeMap`.

use crate::types::Json;
use alloc::{borrow::ToOwned, string::String};
use serde_json::Map;
#[doc(hidden)]
pub use serde_json::Value;

/// Returns the canonical text of `value`.
pub fn text(value: &Value) -> Json {
    // Writing a value cannot fail: all keys are texts, and all numbers are finite.
    serde_json::to_string(value).unwrap_or_default()
}

/// Builds an object from members. Each member has a name and a value: `object! { "port": 80 }`.
///
/// The macro moves the values. `serde_json::json!` would serialize each value again, and would repeat the code of the
/// serialization at every call.
#[macro_export]
macro_rules! object {
    ($($name:literal: $value:expr),* $(,)?) => {
        // The function `object` takes all values out of the array, so the compiled code does not drop the array.
        $crate::json::object(&mut *::core::mem::ManuallyDrop::new([$(($name, $crate::json::Value::from($value))),*]))
    };
}

/// Builds the result of the macro [`object!`](crate::object!). Takes all values out of `members`.
#[inline(never)]
pub fn object(members: &mut [(&str, Value)]) -> Value {
    let mut map = Map::new();
    for (name, value) in members {
        map.insert((*name).to_owned(), value.take());
    }
    Value::Object(map)
}

/// Returns the text of an empty object, for `extra` fields.
pub fn empty() -> Json {
    "{}".to_owned()
}

/// Parses `text`. Returns `None` if `text` is not JSON.
pub fn parse(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok()
}

/// Keeps only the members for which `kept` returns true.
///
/// Does not use the map's own removal function, because its code rebalances the tree and would add two kilobytes.
#[inline(never)]
pub fn keep(map: &mut Map<String, Value>, kept: &dyn Fn(&str, &Value) -> bool) {
    if map.iter().all(|(name, value)| kept(name, value)) {
        return;
    }
    for (name, value) in core::mem::take(map) {
        if kept(&name, &value) {
            map.insert(name, value);
        }
    }
}

/// Removes every member that is null, an empty object or an empty array. Starts with the innermost members. Builders of
/// manifests create such members for fields without a value.
pub fn prune(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.values_mut().for_each(prune);
            keep(map, &|_, member| !is_void(member));
        }
        Value::Array(items) => items.iter_mut().for_each(prune),
        _ => {}
    }
}

fn is_void(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{keep, parse, prune, text};
    use serde_json::json;

    #[test]
    fn an_object_is_built_from_names_and_values() {
        let inner = crate::object! { "d": vec!["x"], "e": Option::<i64>::None };
        assert_eq!(
            crate::object! { "a": 1, "b": "t", "c": inner },
            json!({"a": 1, "b": "t", "c": {"d": ["x"], "e": null}})
        );
        assert_eq!(crate::object! {}, json!({}));
    }

    #[test]
    fn retaining_removes_all_other_members() {
        let mut value = json!({"a": 1, "b": 2, "c": 3});
        keep(value.as_object_mut().unwrap(), &|name, value| name != "a" && value != 3);
        assert_eq!(value, json!({"b": 2}));
        keep(value.as_object_mut().unwrap(), &|_, _| true);
        assert_eq!(value, json!({"b": 2}));
    }

    #[test]
    fn keys_are_sorted_at_every_depth() {
        let value = parse(r#"{"b":1,"a":{"d":[{"z":1,"y":2}],"c":null}}"#).unwrap();
        assert_eq!(text(&value), r#"{"a":{"c":null,"d":[{"y":2,"z":1}]},"b":1}"#);
    }

    #[test]
    fn pruning_removes_empty_values_and_keeps_all_others() {
        let mut value = json!({"a": null, "b": {"c": {}}, "d": [], "e": [{"f": null}], "g": "", "h": 0, "i": false});
        prune(&mut value);
        assert_eq!(value, json!({"e": [{}], "g": "", "h": 0, "i": false}));
    }
}
