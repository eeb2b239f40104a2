//! The object of a pass: its identity, and the form in which policies receive it.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::contract::{Reference, ResourceType};

/// The identity of an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectRef {
    /// The object's API version.
    pub api_version: String,
    /// The object's kind.
    pub kind: String,
    /// The object's namespace.
    pub namespace: String,
    /// The object's name.
    pub name: String,
    /// The UID from the API server; `None` for an object from a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
}

/// A reason why no policy can answer for a JSON value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ObjectError {
    /// A field that every object must have is missing.
    #[error("{0} is missing or is not a text")]
    Missing(&'static str),
    /// The object has no namespace. Policies answer for namespaced objects only.
    #[error("{kind} {name} has no namespace: set metadata.namespace; cluster-scoped kinds are not supported")]
    NoNamespace {
        /// The object's kind.
        kind: String,
        /// The object's name.
        name: String,
    },
    /// The object is a Secret. Policies must not read Secrets.
    #[error("policies never see the content of Secret {0}")]
    Secret(String),
}

impl ObjectRef {
    /// Reads the identity of an object.
    pub fn of(object: &Value) -> Result<Self, ObjectError> {
        let text = |value: &Value, what| {
            value.as_str().filter(|text| !text.is_empty()).map(str::to_owned).ok_or(ObjectError::Missing(what))
        };
        let api_version = text(&object["apiVersion"], "apiVersion")?;
        let kind = text(&object["kind"], "kind")?;
        let name = text(&object["metadata"]["name"], "metadata.name")?;
        let namespace = text(&object["metadata"]["namespace"], "metadata.namespace")
            .map_err(|_| ObjectError::NoNamespace { kind: kind.clone(), name: name.clone() })?;
        if ResourceType::new(&api_version, &kind).is_secret() {
            return Err(ObjectError::Secret(name));
        }
        let uid = object["metadata"]["uid"].as_str().map(str::to_owned);
        Ok(Self { api_version, kind, namespace, name, uid })
    }

    /// Returns the object's type.
    pub fn of_type(&self) -> ResourceType {
        ResourceType::new(&self.api_version, &self.kind)
    }

    /// Returns a reference to the object.
    pub fn reference(&self) -> Reference {
        Reference {
            api_version: self.api_version.clone(),
            kind: self.kind.clone(),
            namespace: Some(self.namespace.clone()),
            name: self.name.clone(),
        }
    }
}

/// Returns an object in the form that policies receive: without managedFields and resourceVersion. If `primary` is
/// true, also removes the status.
pub fn stripped(object: &Value, primary: bool) -> Value {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        if primary {
            fields.remove("status");
        }
        if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
            metadata.remove("resourceVersion");
        }
    }
    object
}

/// Returns the object's annotations, by key.
pub(crate) fn annotations(object: &Value) -> BTreeMap<&str, &str> {
    let annotations = object["metadata"]["annotations"].as_object().into_iter().flatten();
    annotations.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_secret_cannot_be_the_object_of_a_pass() {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "n"}});
        assert_eq!(ObjectRef::of(&secret), Err(ObjectError::Secret("s".to_owned())));
    }
}
