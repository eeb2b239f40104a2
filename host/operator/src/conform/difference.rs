//! Finds the first difference between two values.

use serde_json::Value;

use crate::schema::{Segment, path};

/// Returns the path of the first difference; `None` if the values are equal. Compares the annotations of the host only
/// if all other values are equal, because the host computes these annotations from the other values.
pub(super) fn difference(one: &Value, other: &Value) -> Option<String> {
    let first = |one: &Value, other: &Value| {
        let mut steps = Vec::new();
        differs(one, other, &mut steps).then(|| path(steps))
    };
    first(&unstamped(one), &unstamped(other)).or_else(|| first(one, other))
}

/// Returns the value without the annotations of the host.
fn unstamped(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let is_own = |name: &str| !name.starts_with("kaos.tools/");
            let kept = members.iter().filter(|(name, _)| is_own(name));
            Value::Object(kept.map(|(name, value)| (name.clone(), unstamped(value))).collect())
        }
        Value::Array(items) => items.iter().map(unstamped).collect(),
        other => other.clone(),
    }
}

fn differs<'a>(one: &'a Value, other: &'a Value, steps: &mut Vec<Segment<'a>>) -> bool {
    match (one, other) {
        (Value::Object(first), Value::Object(second)) => {
            let keys = first.keys().chain(second.keys().filter(|key| !first.contains_key(*key)));
            for key in keys {
                steps.push(Segment::Key(key));
                if differs(&one[key], &other[key], steps) {
                    return true;
                }
                steps.pop();
            }
            first.len() != second.len()
        }
        (Value::Array(first), Value::Array(second)) if first.len() == second.len() => {
            for (index, (one, other)) in first.iter().zip(second).enumerate() {
                steps.push(Segment::Index(index));
                if differs(one, other, steps) {
                    return true;
                }
                steps.pop();
            }
            false
        }
        _ => one != other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_path_of_the_first_difference_is_found() {
        let one = json!({"a": [{"b": 1}], "c": {"d": null}});
        assert_eq!(difference(&one, &one), None);
        assert_eq!(difference(&one, &json!({"a": [{"b": 2}], "c": {"d": null}})).as_deref(), Some("a[0].b"));
        assert_eq!(difference(&one, &json!({"a": [], "c": {"d": null}})).as_deref(), Some("a"));
        assert!(difference(&one, &json!({"a": [{"b": 1}], "c": {}})).is_some());
    }

    #[test]
    fn an_annotation_of_the_host_is_named_only_if_nothing_else_differs() {
        let with = |hash: u8, paused: bool| json!({"annotations": {"kaos.tools/hash": hash}, "paused": paused});
        assert_eq!(difference(&with(1, true), &with(2, false)).as_deref(), Some("paused"));
        assert_eq!(difference(&with(1, true), &with(2, true)).as_deref(), Some("annotations[\"kaos.tools/hash\"]"));
    }
}
