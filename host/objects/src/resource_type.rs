//! A kind in a version of its API group.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A kind in a version of its API group.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceType {
    /// The API version, such as `v1` or `apps/v1`.
    pub api_version: String,
    /// The kind, such as `ConfigMap`.
    pub kind: String,
}

impl ResourceType {
    /// Creates a type from an API version and a kind.
    pub fn new(api_version: impl Into<String>, kind: impl Into<String>) -> Self {
        Self { api_version: api_version.into(), kind: kind.into() }
    }

    /// Returns the type of an object. Missing fields become empty texts.
    pub fn of_object(object: &Value) -> Self {
        let text = |field: &str| object[field].as_str().unwrap_or_default();
        Self::new(text("apiVersion"), text("kind"))
    }

    /// Returns the API group; empty for the core group.
    pub fn group(&self) -> &str {
        self.api_version.rsplit_once('/').map_or("", |(group, _)| group)
    }

    /// Returns group and kind, which are equal in all versions of a type.
    pub fn group_kind(&self) -> (&str, &str) {
        (self.group(), &self.kind)
    }

    /// Returns whether this is the type `Secret`. Policies never see the content of a Secret.
    pub fn is_secret(&self) -> bool {
        self.group().is_empty() && self.kind == "Secret"
    }

    /// Returns whether this is the type `Service`. The name of a Service must be a DNS label.
    pub fn is_service(&self) -> bool {
        self.group().is_empty() && self.kind == "Service"
    }
}

impl fmt::Display for ResourceType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.api_version, self.kind)
    }
}
