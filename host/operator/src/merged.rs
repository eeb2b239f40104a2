//! Merges two JSON values.

use serde_json::Value;

/// Merges objects key by key. Any other value of `from`, also a null, replaces the value in `into`.
pub(crate) fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (name, value) in from {
                merge(into.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_of_one_object_that_several_needs_found_come_together() {
        let mut one = json!({"status": {"ready": true}, "items": [1]});
        merge(&mut one, &json!({"status": {"endpoint": "e"}, "items": [2]}));
        assert_eq!(one, json!({"status": {"ready": true, "endpoint": "e"}, "items": [2]}));
    }
}
