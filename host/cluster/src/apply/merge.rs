//! Merges an applied object into the live object, field by field and item by item.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{
    element,
    shape::{Kind, field_of, is_hollow, kind_of},
};
use crate::schema::{Items, List, Node};

/// Returns the live object with the applied fields.
pub(super) fn merge(live: &Value, applied: &Value, node: &Node) -> Value {
    join(Some(live), Some(applied), node).unwrap_or(Value::Null)
}

fn join(live: Option<&Value>, applied: Option<&Value>, node: &Node) -> Option<Value> {
    let keep = || applied.or(live).cloned();
    match kind_of(node, applied.or(live)) {
        Kind::Map(false) => {
            let (left, right) = (live.and_then(Value::as_object), applied.and_then(Value::as_object));
            if is_hollow(left.map(Map::len)) && is_hollow(right.map(Map::len)) {
                return keep();
            }
            let empty = Map::new();
            let (left, right) = (left.unwrap_or(&empty), right.unwrap_or(&empty));
            let names = left.keys().chain(right.keys().filter(|name| !left.contains_key(*name)));
            let out: Map<String, Value> = names
                .filter_map(|name| Some((name.clone(), join(left.get(name), right.get(name), field_of(node, name))?)))
                .collect();
            (!out.is_empty()).then_some(Value::Object(out))
        }
        Kind::List(list) if list.items != Items::Atomic => {
            let (left, right) = (live.and_then(Value::as_array), applied.and_then(Value::as_array));
            if is_hollow(left.map(Vec::len)) && is_hollow(right.map(Vec::len)) {
                return keep();
            }
            let out = items(left.map_or(&[], Vec::as_slice), right.map_or(&[], Vec::as_slice), list);
            (!out.is_empty()).then_some(Value::Array(out))
        }
        _ => keep(),
    }
}

/// Merges the items of two lists, in the order of the applied list. Items that are only in the live list keep their
/// position among the other items.
fn items(left: &[Value], right: &[Value], list: &List) -> Vec<Value> {
    let step = |item: &Value| element::item(item, list).ok();
    let left_steps: Vec<Option<String>> = left.iter().map(step).collect();
    let right_steps: Vec<Option<String>> = right.iter().map(step).collect();
    let position = |steps: &[Option<String>]| -> BTreeMap<String, usize> {
        steps.iter().enumerate().filter_map(|(at, step)| Some((step.clone()?, at))).collect()
    };
    let (in_left, in_right) = (position(&left_steps), position(&right_steps));
    let shared = right_steps.iter().flatten().filter(|step| in_left.contains_key(*step));
    let mut shared = shared.map(String::as_str).peekable();
    let mut merged: Vec<&str> = Vec::new();
    let mut out = Vec::new();
    let (mut l, mut r) = (0, 0);
    while l < left.len() || r < right.len() {
        if let (Some(Some(at)), Some(Some(wanted))) = (left_steps.get(l), right_steps.get(r)) {
            if at == wanted {
                merged.push(at);
                out.extend(join(Some(&left[l]), Some(&right[r]), &list.item));
                (l, r) = (l + 1, r + 1);
                shared.next();
                continue;
            }
            if in_right.contains_key(at) && shared.peek().is_some_and(|next| next != at) {
                // Both lists contain this item. The item gets its position from the applied list.
                l += 1;
                continue;
            }
        }
        if l < left.len() {
            match &left_steps[l] {
                Some(at) if in_right.contains_key(at) => {
                    if merged.contains(&at.as_str()) {
                        l += 1;
                        continue;
                    }
                }
                _ => {
                    out.push(left[l].clone());
                    l += 1;
                    continue;
                }
            }
        }
        if r < right.len() {
            let live = right_steps[r].as_ref().and_then(|step| in_left.get(step)).map(|at| &left[*at]);
            out.extend(join(live, Some(&right[r]), &list.item));
            if let Some(step) = &right_steps[r] {
                merged.push(step);
                if shared.peek() == Some(&step.as_str()) {
                    shared.next();
                }
            }
            r += 1;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::node::Reader;
    use serde_json::json;

    fn names(live: &[&str], applied: &[&str]) -> Vec<String> {
        let node = Reader::structural().read(&json!({"type": "array", "x-kubernetes-list-type": "set",
            "items": {"type": "string"}}));
        let merged = merge(&json!(live), &json!(applied), &node);
        merged.as_array().unwrap().iter().map(|item| item.as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn the_applied_order_wins_and_foreign_items_keep_their_places() {
        assert_eq!(names(&["a", "b", "c"], &["a", "b", "c"]), ["a", "b", "c"]);
        assert_eq!(names(&["a", "x", "b"], &["b", "a"]), ["x", "b", "a"]);
        assert_eq!(names(&["a", "x", "b"], &["a", "n", "b"]), ["a", "x", "n", "b"]);
        assert_eq!(names(&["x"], &["a"]), ["x", "a"]);
        assert_eq!(names(&[], &["b", "a"]), ["b", "a"]);
    }
}
