//! Reading any Kubernetes object.

use crate::decode;
use crate::refusal;
use crate::types::Refusal;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A Kubernetes object. Everything that is missing or of another type reads as absent, so that nothing in
/// here can fail; only [`Object::get`] judges.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Object(Value);

impl Object {
    /// The object in `value`.
    pub fn new(value: Value) -> Self {
        Self(value)
    }

    /// The object in `text`; an empty one if that is not JSON.
    pub fn parse(text: &str) -> Self {
        Self(serde_json::from_str(text).unwrap_or_default())
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
        path.iter().try_fold(&self.0, |value, key| value.get(key))
    }

    /// The text at this path of member names.
    pub fn str_at(&self, path: &[&str]) -> Option<&str> {
        self.at(path)?.as_str()
    }

    /// Member `field` as a type of the caller's; an invalid one is refused with the exact path, for
    /// example `spec.config.memory.contextLimit`. A field that is not there reads as an empty object.
    pub fn get<T: DeserializeOwned>(&self, field: &str) -> Result<T, Refusal> {
        let empty = Value::Object(serde_json::Map::new());
        let value = self.0.get(field).filter(|value| !value.is_null()).unwrap_or(&empty);
        decode::decode(value).map_err(|error| refusal::invalid(error.path().under(field), error.message()))
    }

    /// The whole object.
    pub fn value(&self) -> &Value {
        &self.0
    }
}
