//! The object that is asked about.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::contract::{Reference, ResourceType};

/// Which object, of which owner reference.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectRef {
    /// Its API version.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// What the API server gave it; an object in a file has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
}

/// Why a value is not an object that a policy can answer for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ObjectError {
    /// A field that every object has is missing.
    #[error("{0} is missing or not a text")]
    Missing(&'static str),
    /// Policies answer for namespaced objects.
    #[error("{kind} {name} has no namespace: set metadata.namespace; cluster-scoped kinds are not supported")]
    NoNamespace {
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
    },
    /// Nothing may read it.
    #[error("Secret {0} is shown to no policy")]
    Secret(String),
}

impl ObjectRef {
    /// Reads who an object is.
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

    /// Its type.
    pub fn of_type(&self) -> ResourceType {
        ResourceType::new(&self.api_version, &self.kind)
    }

    /// A reference to it.
    pub fn reference(&self) -> Reference {
        Reference {
            api_version: self.api_version.clone(),
            kind: self.kind.clone(),
            namespace: Some(self.namespace.clone()),
            name: self.name.clone(),
        }
    }
}

/// An object as policies see it: without managedFields and resourceVersion, the primary one also without
/// status.
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

/// The object's annotations, by key.
pub(crate) fn annotations(object: &Value) -> BTreeMap<&str, &str> {
    let annotations = object["metadata"]["annotations"].as_object().into_iter().flatten();
    annotations.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_secret_is_the_object_of_no_pass() {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "n"}});
        assert_eq!(ObjectRef::of(&secret), Err(ObjectError::Secret("s".to_owned())));
    }
}
