//! What a pass is about: one object by type, namespace and name.

use std::fmt;

use kaos_policy::contract::{Reference, ResourceType};
use serde_json::Value;

use crate::queue::Urgency;

/// Primaries to look at again.
pub(super) type Wakes = Vec<(ObjectKey, Urgency)>;

/// One object. The namespace is empty for cluster-scoped objects.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// Its type.
    pub of: ResourceType,
    /// Where it lives.
    pub namespace: String,
    /// Its name there.
    pub name: String,
}

impl ObjectKey {
    /// A key by its three parts.
    pub fn new(of: ResourceType, namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { of, namespace: namespace.into(), name: name.into() }
    }

    /// The key of an object, if it carries what makes one.
    pub fn of_object(object: &Value) -> Option<Self> {
        let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let of = ResourceType::new(text(&object["apiVersion"])?, text(&object["kind"])?);
        let metadata = &object["metadata"];
        Some(Self::new(of, text(&metadata["namespace"]).unwrap_or_default(), text(&metadata["name"])?))
    }

    /// The same object as a need names it.
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
