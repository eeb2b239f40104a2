//! A policy's description of itself, its needs, and its input.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Json;

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
    /// Makes a type of an API version and a kind.
    pub fn new(api_version: impl Into<String>, kind: impl Into<String>) -> Self {
        Self { api_version: api_version.into(), kind: kind.into() }
    }

    /// The type of an object. Missing fields are empty.
    pub fn of_object(object: &Value) -> Self {
        let text = |field: &str| object[field].as_str().unwrap_or_default();
        Self::new(text("apiVersion"), text("kind"))
    }

    /// The API group; empty for the core group.
    pub fn group(&self) -> &str {
        self.api_version.rsplit_once('/').map_or("", |(group, _)| group)
    }

    /// Group and kind, which are the same for every version of a type.
    pub fn group_kind(&self) -> (&str, &str) {
        (self.group(), &self.kind)
    }

    /// Whether this is the type whose content no policy sees.
    pub fn is_secret(&self) -> bool {
        self.group().is_empty() && self.kind == "Secret"
    }

    /// Whether objects of this type need a DNS label as name.
    pub(crate) fn is_service(&self) -> bool {
        self.group().is_empty() && self.kind == "Service"
    }
}

impl fmt::Display for ResourceType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.api_version, self.kind)
    }
}

/// A reference to one object by type and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reference {
    /// The API version, as in [`ResourceType`].
    pub api_version: String,
    /// The kind, as in [`ResourceType`].
    pub kind: String,
    /// The namespace; `None` means the namespace of the primary object, or a cluster-scoped object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The object's name.
    pub name: String,
}

impl Reference {
    /// The reference to an object. Missing fields are empty.
    pub fn of_object(object: &Value) -> Self {
        let text = |field: &str| object["metadata"][field].as_str().map(str::to_owned);
        let ResourceType { api_version, kind } = ResourceType::of_object(object);
        Self { api_version, kind, namespace: text("namespace"), name: text("name").unwrap_or_default() }
    }

    /// The type of the referenced object.
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

/// A sample: an object as a user would write it, and the other objects in the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// The name that errors show.
    pub name: String,
    /// The object.
    pub object: Json,
    /// The other objects in the cluster.
    pub beside: Vec<Json>,
}

/// One kind that a policy answers for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Claim {
    /// The kind.
    pub primary: ResourceType,
    /// Types that plans may contain.
    pub emits: Vec<ResourceType>,
    /// Types that needs may name.
    pub reads: Vec<ResourceType>,
    /// Types that the policy uses only if the cluster serves them.
    pub wishes: Vec<ResourceType>,
    /// The finalizer that stays on the object while the operator deletes the children in order.
    pub finalizer: Option<String>,
    /// Finalizers that the operator removes from every object.
    pub retired_finalizers: Vec<String>,
    /// The samples that the gate evaluates.
    pub samples: Vec<Sample>,
    /// A JSON object for data that the contract has no field for.
    pub extra: Json,
}

/// A policy's description of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// The policy's name: short, in lower case.
    pub name: String,
    /// Semantic version of the policy.
    pub version: String,
    /// The kinds that the policy answers for.
    pub claims: Vec<Claim>,
    /// The JSON Schema of the settings.
    pub settings_schema: Json,
    /// A JSON object, as in [`Claim`].
    pub extra: Json,
}

impl Descriptor {
    /// The claim on a kind, if there is one.
    pub fn claim(&self, primary: &ResourceType) -> Option<&Claim> {
        self.claims.iter().find(|claim| claim.primary == *primary)
    }
}

/// Everything that a policy may know when it answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    /// The object without status, managedFields and resourceVersion.
    pub object: Json,
    /// The answers to the needs, sorted by id.
    pub found: Vec<Found>,
    /// The effective settings, as JSON.
    pub settings: Json,
    /// Facts of the cluster.
    pub cluster: Cluster,
    /// A JSON object, as in [`Claim`].
    pub extra: Json,
}

/// Facts of the cluster that a policy may know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cluster {
    /// The DNS domain of Services.
    pub domain: String,
    /// The operator's namespace.
    pub operator_namespace: String,
    /// The types that the cluster serves. A policy sees only those that its claim wishes for.
    pub served: Vec<ResourceType>,
}

/// The operator's default namespace.
pub const HOME: &str = "kaos-system";

impl Default for Cluster {
    fn default() -> Self {
        Self { domain: "cluster.local".into(), operator_namespace: HOME.into(), served: Vec::new() }
    }
}

/// One read that the host makes for a policy. The host watches the target from then on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Need {
    /// The policy's own name for the need.
    pub id: String,
    /// The objects to read.
    pub target: Target,
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
    /// The type of the target.
    pub fn of(&self) -> ResourceType {
        match self {
            Self::Named(reference) => reference.of(),
            Self::Labelled(selector) => selector.of.clone(),
        }
    }

    /// The namespace of the target, if it names one.
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

/// The answer to a need.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// The need's id.
    pub id: String,
    /// The result of the lookup.
    pub answer: Answer,
}

/// The result of looking up a need.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Answer {
    /// The objects that exist; empty if there are none yet.
    Objects(Vec<Json>),
    /// Facts of a Secret. A policy never sees the content.
    Secret(SecretFacts),
    /// The cluster does not serve this type now.
    Unserved,
    /// The reason why the object may not be read.
    Forbidden(String),
}

/// Facts of a Secret that a policy may know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretFacts {
    /// Whether the Secret exists.
    pub present: bool,
    /// The Secret's keys, sorted.
    pub keys: Vec<String>,
    /// A digest of the content, made with a key that only the operator has.
    pub digest: String,
}
