//! Reading any Kubernetes object.

use crate::refusal;
use crate::types::Refusal;
use alloc::{string::String, sync::Arc};
use kaos_decode::Decode;
use serde_json::Value;

/// A Kubernetes object. Everything that is missing or of another type reads as absent, so that nothing in
/// here can fail; only [`Object::get`] judges.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Object {
    value: Arc<Value>,
    /// Whether there was a text that could not be read: what is absent may well be there.
    unread: bool,
}

impl Object {
    /// The object in `value`.
    pub fn new(value: Value) -> Self {
        Self { value: Arc::new(value), unread: false }
    }

    /// The object in `text`. If that is not JSON, or is nested deeper than 127 levels, [`Object::get`] refuses every
    /// field; what is not nested so deeply can be seen all the same, and the object still has its name.
    pub fn parse(text: &str) -> Self {
        match serde_json::from_str(text) {
            Ok(value) => Self::new(value),
            Err(_) => Self { value: Arc::new(serde_json::from_str(&shallow(text)).unwrap_or_default()), unread: true },
        }
    }

    /// `metadata.name`, or the empty string.
    pub fn name(&self) -> &str {
        self.str_at(&["metadata", "name"]).unwrap_or_default()
    }

    /// `metadata.namespace`, or the empty string.
    pub fn namespace(&self) -> &str {
        self.str_at(&["metadata", "namespace"]).unwrap_or_default()
    }

    /// `metadata.generation`, or 0.
    pub fn generation(&self) -> i64 {
        self.at(&["metadata", "generation"]).and_then(Value::as_i64).unwrap_or_default()
    }

    /// One label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.str_at(&["metadata", "labels", key])
    }

    /// One annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.str_at(&["metadata", "annotations", key])
    }

    /// `apiVersion`, or the empty string.
    pub fn api_version(&self) -> &str {
        self.str_at(&["apiVersion"]).unwrap_or_default()
    }

    /// `kind`, or the empty string.
    pub fn kind(&self) -> &str {
        self.str_at(&["kind"]).unwrap_or_default()
    }

    /// Whether `status.ready` is true.
    pub fn is_ready(&self) -> bool {
        self.at(&["status", "ready"]) == Some(&Value::Bool(true))
    }

    /// `status.endpoint` where it is not empty.
    pub fn endpoint(&self) -> Option<&str> {
        self.str_at(&["status", "endpoint"]).filter(|endpoint| !endpoint.is_empty())
    }

    /// The entry of `status.conditions` with this type.
    pub fn condition(&self, kind: &str) -> Option<&Value> {
        let conditions = self.at(&["status", "conditions"])?.as_array()?;
        conditions.iter().find(|condition| condition.get("type").and_then(Value::as_str) == Some(kind))
    }

    /// The value at this path of member names.
    pub fn at(&self, path: &[&str]) -> Option<&Value> {
        path.iter().try_fold(self.value(), |value, key| value.get(key))
    }

    /// The text at this path of member names.
    pub fn str_at(&self, path: &[&str]) -> Option<&str> {
        self.at(path)?.as_str()
    }

    /// Member `field` as a type of the caller's; an invalid one is refused with the exact path, for
    /// example `spec.config.memory.contextLimit`. A field that is not there reads as an empty object.
    pub fn get<T: Decode>(&self, field: &str) -> Result<T, Refusal> {
        if self.unread {
            return Err(refusal::invalid(field, "cannot be read: nest it less than 128 levels deep"));
        }
        let empty = Value::Object(serde_json::Map::new());
        let value = self.value.get(field).filter(|value| !value.is_null()).unwrap_or(&empty);
        T::decode(value).map_err(|error| refusal::invalid(error.path().under(field), error.message()))
    }

    /// The whole object.
    pub fn value(&self) -> &Value {
        &self.value
    }
}

/// `text` with a null for each list and object that is nested deeper than a reader goes.
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
    fn an_object_says_who_it_is() {
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
    fn its_status_is_read_as_far_as_it_makes_sense() {
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
    fn nothing_of_another_shape_fails() {
        for text in ["", "{", "5", "[]", r#"{"metadata": []}"#, r#"{"status": {"conditions": {}}}"#] {
            let object = Object::parse(text);
            assert_eq!((object.name(), object.kind(), object.generation()), ("", "", 0), "{text}");
            assert_eq!(object.condition("Ready"), None, "{text}");
            let is_json = !matches!(text, "" | "{");
            let spec = object.get::<BTreeMap<String, Value>>("spec");
            assert_eq!(spec.ok(), is_json.then(BTreeMap::new), "{text}");
        }
    }

    #[test]
    fn a_field_that_could_not_be_read_is_not_taken_for_absent() {
        let deep = format!(r#"{{"spec":{{"a":{}1{}}}}}"#, "[".repeat(130), "]".repeat(130));
        let Err(Refusal::Invalid(wrong)) = Object::parse(&deep).get::<BTreeMap<String, Value>>("spec") else {
            panic!("must be refused")
        };
        assert_eq!((wrong[0].path.as_str(), wrong[0].message.contains("128 levels")), ("spec", true));
    }

    #[test]
    fn an_object_that_is_nested_too_deeply_is_still_known_by_what_is_not() {
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
        assert!(object.get::<BTreeMap<String, String>>("data").unwrap().is_empty());
    }
}
