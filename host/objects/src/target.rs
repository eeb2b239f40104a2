//! Targets: a reference names one object, and a selector finds objects by their labels.

use std::fmt;

use kaos_fields::Fields;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::resource_type::ResourceType;

/// A reference to one object by type and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reference {
    /// The API version, as in [`ResourceType`].
    pub api_version: String,
    /// The kind, as in [`ResourceType`].
    pub kind: String,
    /// The namespace; `None` means the namespace of the object of the pass, or a cluster-scoped object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The object's name.
    pub name: String,
}

impl Reference {
    /// Creates the reference to an object. Missing fields become empty texts.
    pub fn of_object(object: &Value) -> Self {
        let text = |field: &str| object["metadata"][field].as_str().map(str::to_owned);
        let ResourceType { api_version, kind } = ResourceType::of_object(object);
        Self { api_version, kind, namespace: text("namespace"), name: text("name").unwrap_or_default() }
    }

    /// Returns the type of the referenced object.
    pub fn of(&self) -> ResourceType {
        ResourceType::new(&self.api_version, &self.kind)
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {namespace}/{}", self.kind, self.name),
            None => write!(f, "{} {}", self.kind, self.name),
        }
    }
}

/// Selects objects by their labels.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Selector {
    /// The objects' type.
    pub of: ResourceType,
    /// The namespace, as in [`Reference`].
    pub namespace: Option<String>,
    /// The labels that the objects must have.
    pub labels: Vec<(String, String)>,
}

/// The target of a need.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Target {
    /// One object.
    Named(Reference),
    /// All objects with these labels.
    Labelled(Selector),
}

impl Target {
    /// Returns the type of the target.
    pub fn of(&self) -> ResourceType {
        match self {
            Self::Named(reference) => reference.of(),
            Self::Labelled(selector) => selector.of.clone(),
        }
    }

    /// Returns the namespace that the target names, if any.
    pub fn namespace(&self) -> Option<&str> {
        match self {
            Self::Named(reference) => reference.namespace.as_deref(),
            Self::Labelled(selector) => selector.namespace.as_deref(),
        }
    }

    /// Sets the namespace if the target names none.
    pub fn fill_namespace(&mut self, namespace: &str) {
        let slot = match self {
            Self::Named(reference) => &mut reference.namespace,
            Self::Labelled(selector) => &mut selector.namespace,
        };
        slot.get_or_insert_with(|| namespace.to_owned());
    }
}

/// A target, and the fields that a policy reads from the target's objects.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Followed {
    /// The objects.
    pub target: Target,
    /// The fields that the policy reads.
    pub fields: Fields,
}

impl From<&Target> for Followed {
    /// Creates a target. The policy reads all fields of this target.
    fn from(target: &Target) -> Self {
        Self { target: target.clone(), fields: Fields::whole() }
    }
}
