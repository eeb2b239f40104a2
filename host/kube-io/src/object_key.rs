//! The key of an object: type, namespace and name.

use std::fmt;

use kaos_objects::{Reference, ResourceType};
use serde_json::Value;

use crate::urgency::Urgency;

/// Objects that need a pass, each with its urgency.
pub type Wakes = Vec<(ObjectKey, Urgency)>;

/// The key of an object. The namespace is empty for a cluster-scoped object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// The object's type.
    pub of: ResourceType,
    /// The object's namespace.
    pub namespace: String,
    /// The object's name.
    pub name: String,
}

impl ObjectKey {
    /// Creates a key from its three parts.
    pub fn new(of: ResourceType, namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { of, namespace: namespace.into(), name: name.into() }
    }

    /// Returns the key of an object. Returns `None` if the object has no type or no name.
    pub fn of_object(object: &Value) -> Option<Self> {
        let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let of = ResourceType::new(text(&object["apiVersion"])?, text(&object["kind"])?);
        let metadata = &object["metadata"];
        Some(Self::new(of, text(&metadata["namespace"]).unwrap_or_default(), text(&metadata["name"])?))
    }

    /// Converts the key to a reference, the form in which a need names an object.
    pub fn reference(&self) -> Reference {
        Reference {
            api_version: self.of.api_version.clone(),
            kind: self.of.kind.clone(),
            namespace: (!self.namespace.is_empty()).then(|| self.namespace.clone()),
            name: self.name.clone(),
        }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            write!(f, "{} {}", self.of.kind, self.name)
        } else {
            write!(f, "{} {}/{}", self.of.kind, self.namespace, self.name)
        }
    }
}
