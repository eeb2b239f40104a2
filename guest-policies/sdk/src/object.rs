//! Reads any Kubernetes object.

use crate::deserialize::from_value;
use crate::refusal;
use crate::types::Refusal;
use alloc::{string::String, sync::Arc};
use kaos_decode::Decode;
use serde_json::Value;

/// A Kubernetes object. Most functions treat a member of the wrong type as absent. Only [`Object::get`] and
/// [`Object::read`] report errors.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Object {
    value: Arc<Value>,
    /// Whether the parser refused the object's text. If true, the text can contain members that `value` lacks.
    unread: bool,
}

impl Object {
    /// Wraps `value`.
    pub fn new(value: Value) -> Self {
        Self { value: Arc::new(value), unread: false }
    }

    /// Parses `text`. If `text` is not JSON or is nested deeper than 127 levels, [`Object::get`] and [`Object::read`]
    /// refuse every field. Members near the root, such as the name, stay readable.
    pub fn parse(text: &str) -> Self {
        match serde_json::from_str(text) {
            Ok(value) => Self::new(value),
            Err(_) => Self { value: Arc::new(serde_json::from_str(&shallow(text)).unwrap_or_default()), unread: true },
        }
    }

    /// Returns `metadata.name`, or the empty string.
    pub fn name(&self) -> &str {
        self.str_at(&["metadata", "name"]).unwrap_or_default()
    }

    /// Returns `metadata.namespace`, or the empty string.
    pub fn namespace(&self) -> &str {
        self.str_at(&["metadata", "namespace"]).unwrap_or_default()
    }

    /// Returns `metadata.generation`, or 0.
    pub fn generation(&self) -> i64 {
        self.at(&["metadata", "generation"]).and_then(Value::as_i64).unwrap_or_default()
    }

    /// Returns the value of the label `key`, or `None` without this label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.str_at(&["metadata", "labels", key])
    }

    /// Returns the value of the annotation `key`, or `None` without this annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.str_at(&["metadata", "annotations", key])
    }

    /// Returns `apiVersion`, or the empty string.
    pub fn api_version(&self) -> &str {
        self.str_at(&["apiVersion"]).unwrap_or_default()
    }

    /// Returns `kind`, or the empty string.
    pub fn kind(&self) -> &str {
        self.str_at(&["kind"]).unwrap_or_default()
    }

    /// Returns whether `status.ready` is true.
    pub fn is_ready(&self) -> bool {
        self.at(&["status", "ready"]) == Some(&Value::Bool(true))
    }

    /// Returns `status.endpoint`, or `None` if this field is missing or empty.
    pub fn endpoint(&self) -> Option<&str> {
        self.str_at(&["status", "endpoint"]).filter(|endpoint| !endpoint.is_empty())
    }

    /// Returns the entry of `status.conditions` with the type `kind`, or `None` without such an entry.
    pub fn condition(&self, kind: &str) -> Option<&Value> {
        let conditions = self.at(&["status", "conditions"])?.as_array()?;
        conditions.iter().find(|condition| condition.get("type").and_then(Value::as_str) == Some(kind))
    }

    /// Returns the value at this path of member names, or `None` without such a value.
    pub fn at(&self, path: &[&str]) -> Option<&Value> {
        path.iter().try_fold(self.value(), |value, key| value.get(key))
    }

    /// Returns the text at this path of member names, or `None` if the value is missing or is not a text.
    pub fn str_at(&self, path: &[&str]) -> Option<&str> {
        self.at(path)?.as_str()
    }

    /// Decodes the member `field` into a type that the caller chooses. Refuses an invalid member with its exact path,
    /// for example `spec.config.memory.contextLimit`. Treats a missing member as an empty object.
    pub fn get<T: Decode>(&self, field: &str) -> Result<T, Refusal> {
        self.member(field, |value| {
            T::decode(value).map_err(|error| refusal::invalid(error.path().under(field), error.message()))
        })
    }

    /// Like [`Object::get`], for a type that derives serde's `Deserialize`, such as a type from another crate. A type
    /// that derives `Decode` makes a smaller component.
    pub fn read<T: for<'de> serde::Deserialize<'de>>(&self, field: &str) -> Result<T, Refusal> {
        self.member(field, |value| {
            from_value(value).map_err(|error| refusal::invalid(error.path().under(field), error.message()))
        })
    }

    fn member<T>(&self, field: &str, decode: impl FnOnce(&Value) -> Result<T, Refusal>) -> Result<T, Refusal> {
        if self.unread {
            return Err(unread(field));
        }
        let empty = Value::Object(serde_json::Map::new());
        decode(self.value.get(field).filter(|value| !value.is_null()).unwrap_or(&empty))
    }

    /// Returns the whole object.
    pub fn value(&self) -> &Value {
        &self.value
    }
}

/// Returns the refusal for a field of an object whose text the parser refused.
#[cold]
fn unread(field: &str) -> Refusal {
    refusal::invalid(field, "cannot be read: nest it less than 128 levels deep")
}

/// Returns `text` with null in place of each list and object that is nested deeper than `DEEPEST` levels.
#[cold]
fn shallow(text: &str) -> String {
    const DEEPEST: usize = 100;
    let (mut kept, mut depth, mut is_text, mut is_escaped) = (String::new(), 0_usize, false, false);
    for c in text.chars() {
        let was = depth;
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if is_text => is_escaped = true,
            '"' => is_text = !is_text,
            '[' | '{' if !is_text => depth += 1,
            ']' | '}' if !is_text => depth = depth.saturating_sub(1),
            _ => {}
        }
        if was.max(depth) <= DEEPEST {
            kept.push(c);
        } else if depth > was && was == DEEPEST {
            kept.push_str("null");
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::Object;
    use crate::types::{Refusal, Violation};
    use serde_json::{Value, json};
    use std::collections::BTreeMap;

    #[test]
    fn an_object_has_a_kind_a_name_and_a_namespace() {
        let object = Object::new(json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": "a", "namespace": "n", "generation": 3, "labels": {"a.b/c": "l"}, "annotations": {"a.b/c": "x"},
            },
        }));
        assert_eq!((object.api_version(), object.kind()), ("v1", "Pod"));
        assert_eq!((object.name(), object.namespace(), object.generation()), ("a", "n", 3));
        assert_eq!((object.label("a.b/c"), object.annotation("a.b/c")), (Some("l"), Some("x")));
        assert_eq!((object.label("a"), object.annotation("b")), (None, None));
        assert_eq!(object.str_at(&["metadata", "name"]), Some("a"));
    }

    #[test]
    fn readable_parts_of_a_status_are_used() {
        let conditions = json!([{"type": "Available", "status": "True"}, {"type": "Ready", "status": "False"}, 5]);
        let object = Object::new(json!({"status": {"ready": true, "endpoint": "http://x", "conditions": conditions}}));
        assert!(object.is_ready());
        assert_eq!(object.endpoint(), Some("http://x"));
        assert_eq!(object.condition("Ready").unwrap()["status"], "False");
        assert_eq!(object.condition("Other"), None);
        assert_eq!(Object::new(json!({"status": {"endpoint": ""}})).endpoint(), None);
        assert!(!Object::new(json!({"status": {"ready": "true"}})).is_ready());
    }

    #[test]
    fn an_object_of_another_shape_reads_as_empty() {
        for text in ["", "{", "5", "[]", r#"{"metadata": []}"#, r#"{"status": {"conditions": {}}}"#] {
            let object = Object::parse(text);
            assert_eq!((object.name(), object.kind(), object.generation()), ("", "", 0), "{text}");
            assert_eq!(object.condition("Ready"), None, "{text}");
            let is_json = !matches!(text, "" | "{");
            let spec = object.get::<BTreeMap<String, Value>>("spec");
            assert_eq!(spec, object.read("spec"), "{text}");
            assert_eq!(spec.ok(), is_json.then(BTreeMap::new), "{text}");
        }
    }

    #[test]
    fn an_unreadable_field_does_not_count_as_absent() {
        let deep = format!(r#"{{"spec":{{"a":{}1{}}}}}"#, "[".repeat(130), "]".repeat(130));
        let Err(Refusal::Invalid(wrong)) = Object::parse(&deep).get::<BTreeMap<String, Value>>("spec") else {
            panic!("must be refused")
        };
        assert_eq!((wrong[0].path.as_str(), wrong[0].message.contains("128 levels")), ("spec", true));
    }

    #[test]
    fn a_too_deeply_nested_object_keeps_its_other_fields() {
        let nested = format!("{}\"]\\\"{{\"{}", "[{\"a\":".repeat(130), "}]".repeat(130));
        let object = Object::parse(&format!(r#"{{"spec":{{"a":{nested},"b":false}},"metadata":{{"name":"x"}}}}"#));
        assert_eq!((object.name(), object.at(&["spec", "b"])), ("x", Some(&json!(false))));
        assert!(object.at(&["spec", "a"]).is_some_and(Value::is_array));
        assert!(object.get::<BTreeMap<String, Value>>("metadata").is_err());
    }

    #[test]
    fn a_field_that_is_wrong_is_refused_with_its_path() {
        let object = Object::new(json!({"spec": {"models": [1]}, "data": null}));
        let Err(Refusal::Invalid(wrong)) = object.get::<BTreeMap<String, Vec<String>>>("spec") else {
            panic!("must be refused")
        };
        let message = "must be a string, not integer `1`".to_owned();
        assert_eq!(wrong, [Violation { path: "spec.models[0]".to_owned(), message }]);
        assert_eq!(object.read::<BTreeMap<String, Vec<String>>>("spec"), Err(Refusal::Invalid(wrong)));
        assert!(object.get::<BTreeMap<String, String>>("data").unwrap().is_empty());
    }
}
