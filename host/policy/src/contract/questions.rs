//! What a policy says of itself, what it asks for, and what it is handed.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Json;

/// A kind in a version of its API group.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceType {
    /// `v1`, `apps/v1`.
    pub api_version: String,
    /// `ConfigMap`.
    pub kind: String,
}

impl ResourceType {
    /// A type by its two names.
    pub fn new(api_version: impl Into<String>, kind: impl Into<String>) -> Self {
        Self { api_version: api_version.into(), kind: kind.into() }
    }

    /// The type that an object says it is of; what it does not say is empty.
    pub fn of_object(object: &Value) -> Self {
        let text = |field: &str| object[field].as_str().unwrap_or_default();
        Self::new(text("apiVersion"), text("kind"))
    }

    /// The API group; empty for the core group.
    pub fn group(&self) -> &str {
        self.api_version.rsplit_once('/').map_or("", |(group, _)| group)
    }

    /// Group and kind, the same for every version of a type.
    pub fn group_kind(&self) -> (&str, &str) {
        (self.group(), &self.kind)
    }

    /// Whether this is the type whose content no policy sees.
    pub fn is_secret(&self) -> bool {
        self.group().is_empty() && self.kind == "Secret"
    }

    /// Whether this is the type whose names are labels of the DNS.
    pub(crate) fn is_service(&self) -> bool {
        self.group().is_empty() && self.kind == "Service"
    }
}

impl fmt::Display for ResourceType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.api_version, self.kind)
    }
}

/// One object by its type and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reference {
    /// As in [`ResourceType`].
    pub api_version: String,
    /// As in [`ResourceType`].
    pub kind: String,
    /// Without one: the namespace of the primary object, or cluster-scoped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The object's name.
    pub name: String,
}

impl Reference {
    /// A reference to an object; what it does not say is empty.
    pub fn of_object(object: &Value) -> Self {
        let text = |field: &str| object["metadata"][field].as_str().map(str::to_owned);
        let ResourceType { api_version, kind } = ResourceType::of_object(object);
        Self { api_version, kind, namespace: text("namespace"), name: text("name").unwrap_or_default() }
    }

    /// The type of the object referred to.
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

/// An object as a user would write it and what the cluster holds beside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// Shown when the sample fails.
    pub name: String,
    /// The object.
    pub object: Json,
    /// What the cluster holds.
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
    /// Types that are used where the cluster serves them.
    pub wishes: Vec<ResourceType>,
    /// Held while children are taken down in order.
    pub finalizer: Option<String>,
    /// Taken off every object on sight.
    pub retired_finalizers: Vec<String>,
    /// What the gate evaluates.
    pub samples: Vec<Sample>,
    /// An object for what the contract has no field for.
    pub extra: Json,
}

/// What a policy is and what it may do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// Short, lower case.
    pub name: String,
    /// Semantic version of the policy.
    pub version: String,
    /// The kinds it answers for.
    pub claims: Vec<Claim>,
    /// JSON Schema of the settings.
    pub settings_schema: Json,
    /// As in [`Claim`].
    pub extra: Json,
}

impl Descriptor {
    /// The claim on a kind, if there is one.
    pub fn claim(&self, primary: &ResourceType) -> Option<&Claim> {
        self.claims.iter().find(|claim| claim.primary == *primary)
    }
}

/// Everything that a policy may know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    /// The object without status, managedFields and resourceVersion.
    pub object: Json,
    /// The answers to needs, in the order of their ids.
    pub found: Vec<Found>,
    /// The effective settings.
    pub settings: Json,
    /// Facts of the cluster.
    pub cluster: Cluster,
    /// As in [`Claim`].
    pub extra: Json,
}

/// What a policy may know of the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cluster {
    /// The DNS domain of Services.
    pub domain: String,
    /// Where the operator lives.
    pub operator_namespace: String,
    /// Which types are served. The host hands a policy only those that its claim wishes for.
    pub served: Vec<ResourceType>,
}

/// The namespace that an operator lives in unless it is told otherwise.
pub const HOME: &str = "kaos-system";

impl Default for Cluster {
    fn default() -> Self {
        Self { domain: "cluster.local".into(), operator_namespace: HOME.into(), served: Vec::new() }
    }
}

/// One read that the host makes for a policy, and watches from then on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Need {
    /// The policy's own name for it.
    pub id: String,
    /// What to read.
    pub target: Target,
}

/// Objects by their labels.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Selector {
    /// Their type.
    pub of: ResourceType,
    /// As in [`Reference`].
    pub namespace: Option<String>,
    /// Each label that they must have.
    pub labels: Vec<(String, String)>,
}

/// What a need is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Target {
    /// One object.
    Named(Reference),
    /// All objects with these labels.
    Labelled(Selector),
}

impl Target {
    /// The type that is read.
    pub fn of(&self) -> ResourceType {
        match self {
            Self::Named(reference) => reference.of(),
            Self::Labelled(selector) => selector.of.clone(),
        }
    }

    /// The namespace that is named, if one is.
    pub fn namespace(&self) -> Option<&str> {
        match self {
            Self::Named(reference) => reference.namespace.as_deref(),
            Self::Labelled(selector) => selector.namespace.as_deref(),
        }
    }

    /// Fills in a namespace where none is named.
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
    /// What there is.
    pub answer: Answer,
}

/// What there is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Answer {
    /// Nothing there yet is an empty list.
    Objects(Vec<Json>),
    /// Never a Secret's content.
    Secret(SecretFacts),
    /// The cluster does not serve this type now.
    Unserved,
    /// Who may not read it.
    Forbidden(String),
}

/// What a policy may know of a Secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretFacts {
    /// Whether it is there.
    pub present: bool,
    /// Its keys, sorted.
    pub keys: Vec<String>,
    /// Of its content, keyed with what only the operator has.
    pub digest: String,
}
