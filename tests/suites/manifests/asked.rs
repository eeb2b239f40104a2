//! Compares a stored object with the requested object. The stored object may differ in three ways: the server adds
//! defaults, drops empty values, and rewrites quantities.

use serde_json::Value;

/// Returns the path of the first stored value that differs from the requested value, or `None` without a difference.
pub(crate) fn otherwise(asked: &Value, stored: &Value) -> Option<String> {
    let mut path = String::new();
    differs(asked, stored, &mut path).then_some(path)
}

/// Fields that a server drops if Kubernetes' feature gate for the field is disabled.
///
/// The test cannot know the server's feature gates.
const GATED: [&str; 2] = ["schedulingGroup", "stopSignal"];
/// Deprecated fields, each with the current field. The server keeps both fields equal.
const OLDER: [(&str, &str); 1] = [("serviceAccount", "serviceAccountName")];

/// Returns whether two values differ. If they differ, appends the path of the differing field to `path`.
fn differs(asked: &Value, stored: &Value, path: &mut String) -> bool {
    let length = path.len();
    match (asked, stored) {
        (asked, Value::Null) => return !is_empty(asked),
        (Value::Object(asked), Value::Object(stored)) => {
            let follows = |name: &str| OLDER.iter().any(|(older, newer)| *older == name && asked.contains_key(*newer));
            for (name, asked) in asked.iter().filter(|(name, _)| !GATED.contains(&name.as_str()) && !follows(name)) {
                path.push_str(&format!(".{name}"));
                if differs(asked, stored.get(name).unwrap_or(&Value::Null), path) {
                    return true;
                }
                path.truncate(length);
            }
        }
        (Value::Array(asked), Value::Array(stored)) if asked.len() == stored.len() => {
            for (index, (asked, stored)) in asked.iter().zip(stored).enumerate() {
                path.push_str(&format!("[{index}]"));
                if differs(asked, stored, path) {
                    return true;
                }
                path.truncate(length);
            }
        }
        (Value::Number(asked), Value::Number(stored)) => return asked.as_f64() != stored.as_f64(),
        // Ignore differences between quantities, because the server rewrites them: it stores both `1000m` and the
        // number 1 as `1`.
        (Value::Number(_) | Value::String(_), Value::String(_)) if is_amount(path) => {}
        (Value::String(asked), _) if asked.is_empty() => {}
        // Accept any stored value if the requested `targetPort` is 0, because the server then stores the Service's port
        // instead.
        (Value::Number(asked), _) if path.ends_with("targetPort") && asked.as_i64() == Some(0) => {}
        (Value::Number(asked), _) if path.contains("Probe") && asked.as_f64() == Some(0.0) => {}
        (asked, stored) => return asked != stored,
    }
    false
}

/// Returns whether Go omits this value when it writes an object.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.iter().all(|(name, value)| GATED.contains(&name.as_str()) || is_empty(value)),
    }
}

fn is_amount(path: &str) -> bool {
    let above = path.rsplit_once('.').map_or("", |(above, _)| above);
    ["limits", "requests", "overhead"].iter().any(|map| above.ends_with(map) || path.contains(&format!(".{map}.")))
        || path.ends_with("sizeLimit")
        || path.ends_with("divisor")
        || path.contains(".storage")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn normalizing_sets_defaults_and_drops_empty_values() {
        let asked = json!({"a": null, "b": [], "limits": {"cpu": "1000m"}, "c": {"d": 1.0}});
        assert_eq!(otherwise(&asked, &json!({"limits": {"cpu": "1"}, "c": {"d": 1, "e": 2}})), None);
        assert_eq!(otherwise(&json!({"a": [{"b": "c"}]}), &json!({"a": [{"b": "d"}]})).as_deref(), Some(".a[0].b"));
        assert_eq!(otherwise(&json!({"a": "b"}), &json!({})).as_deref(), Some(".a"));
    }
}
