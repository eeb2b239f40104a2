//! Finds the first difference between two values.

use serde_json::Value;

use crate::schema::{Segment, path};

/// Returns the path of the first difference; `None` if the values are equal.
pub(super) fn difference(one: &Value, other: &Value) -> Option<String> {
    let mut steps = Vec::new();
    differs(one, other, &mut steps).then(|| path(steps))
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
}
