//! Removes fields from an object.

use serde_json::Value;

use super::{
    FieldSet, element,
    shape::{Kind, field_of, kind_of},
};
use crate::schema::{Items, Node};

/// Returns `value` without the fields in `unwanted`. If an object or list becomes empty, also removes it. `None` if
/// nothing is left.
pub(super) fn remove(value: &Value, unwanted: &FieldSet, node: &Node) -> Option<Value> {
    match (kind_of(node, Some(value)), value) {
        (Kind::Map(false), Value::Object(object)) if !object.is_empty() => {
            let left: serde_json::Map<String, Value> = object
                .iter()
                .filter_map(|(name, value)| match unwanted.step(&element::field(name)) {
                    Some(set) if set.is_owned() => None,
                    Some(set) => Some((name.clone(), remove(value, set, field_of(node, name)).unwrap_or(Value::Null))),
                    None => Some((name.clone(), value.clone())),
                })
                .filter(|(_, value)| !value.is_null())
                .collect();
            (!left.is_empty()).then_some(Value::Object(left))
        }
        (Kind::List(list), Value::Array(items)) if list.items != Items::Atomic && !items.is_empty() => {
            let left: Vec<Value> = items
                .iter()
                .filter_map(|item| match element::item(item, list).ok().and_then(|step| unwanted.step(&step)) {
                    Some(set) if set.is_owned() => None,
                    Some(set) => remove(item, set, &list.item),
                    None => Some(item.clone()),
                })
                .collect();
            (!left.is_empty()).then_some(Value::Array(left))
        }
        // An atomic map or list is removed only as a whole.
        (Kind::Map(_) | Kind::List(_), _) => None,
        (Kind::Leaf, _) => Some(value.clone()),
    }
}
