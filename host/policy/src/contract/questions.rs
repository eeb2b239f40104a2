//! A policy's description of itself, its needs, and its input.

use kaos_objects::{Fields, Followed, ResourceType, SecretFacts, Target};
use serde::{Deserialize, Serialize};

use super::Json;

/// The API group of KAOS's own kinds.
const KAOS: &str = "kaos.tools";
/// The finalizer that [`Claim::client_finalizer`] returns.
const CLIENT_FINALIZER: &str = "kaos.tools/oidc-client-finalizer";

/// A sample: an object as a user would write it, and the other objects in the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// The name of the sample, for error messages.
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
    /// Types that the policy's needs may name.
    pub reads: Vec<ResourceType>,
    /// Types that the policy uses only if the cluster serves them.
    pub wishes: Vec<ResourceType>,
    /// The finalizer that keeps the object until the operator has deleted the children in the right order.
    pub finalizer: Option<String>,
    /// The samples that the gate evaluates.
    pub samples: Vec<Sample>,
    /// A JSON object for data that the contract has no field for.
    pub extra: Json,
}

impl Claim {
    /// Returns the finalizer that earlier KAOS operators, which had no policies, added to objects of this kind. This
    /// operator removes the finalizer immediately, because no earlier operator will remove it. Returns `None` for kinds
    /// of other groups, because the earlier operators managed only KAOS kinds.
    pub fn earlier_finalizer(&self) -> Option<String> {
        let ResourceType { kind, .. } = &self.primary;
        (self.primary.group() == KAOS).then(|| format!("{KAOS}/{}-finalizer", kind.to_ascii_lowercase()))
    }

    /// Returns the finalizer of KAOS 0.8 for the object's client at an identity provider. Only KAOS 0.8 can delete the
    /// client, so the finalizer stays until a user deletes the object. Returns `None` for kinds of other groups.
    pub fn client_finalizer(&self) -> Option<&'static str> {
        (self.primary.group() == KAOS).then_some(CLIENT_FINALIZER)
    }
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
    /// A JSON object for data that the contract has no field for.
    pub extra: Json,
}

impl Descriptor {
    /// Returns the claim on a kind; `None` if the policy does not claim the kind.
    pub fn claim(&self, primary: &ResourceType) -> Option<&Claim> {
        self.claims.iter().find(|claim| claim.primary == *primary)
    }
}

/// The input of a policy: all facts from which the policy computes its answer.
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
    /// Whether the host ever applied a plan of the object in full.
    pub applied: bool,
    /// A JSON object for data that the contract has no field for.
    pub extra: Json,
}

impl Subject {
    /// Adds the answers to the needs of one round.
    pub fn add(&mut self, found: &[Found]) {
        self.found.extend_from_slice(found);
        self.found.sort_by(|one, other| one.id.cmp(&other.id));
    }
}

/// The facts about the cluster that a policy gets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cluster {
    /// The DNS domain of Services.
    pub domain: String,
    /// The operator's namespace.
    pub operator_namespace: String,
    /// The types that the cluster serves. Of these types, a policy sees only those in the `wishes` of its claim.
    pub served: Vec<ResourceType>,
}

/// The operator's default namespace.
pub const HOME: &str = "kaos-system";

impl Default for Cluster {
    fn default() -> Self {
        Self { domain: "cluster.local".into(), operator_namespace: HOME.into(), served: Vec::new() }
    }
}

/// A reference to objects that the policy must see. The host reads these objects for the policy. From then on, the host
/// watches the target of the need.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Need {
    /// The id of the need, which the policy chose.
    pub id: String,
    /// The objects to read.
    pub target: Target,
    /// The paths of the fields that the policy reads; empty for all fields.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<String>,
    /// Whether the policy can give its full answer if the needed object does not exist.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
}

impl Need {
    /// Returns the target, with the fields of the target that the policy reads. If a path is invalid, returns the
    /// target with all its fields. The guard accepts only valid paths.
    pub fn followed(&self) -> Followed {
        Followed { target: self.target.clone(), fields: Fields::parse(&self.fields).unwrap_or_default() }
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
    /// The existing objects; empty if no object exists yet.
    Objects(Vec<Json>),
    /// Facts of a Secret. A policy never sees the Secret's values.
    Secret(SecretFacts),
    /// The cluster does not serve this type now.
    Unserved,
    /// The operator or the policy is not allowed to read the object. The text gives the reason.
    Forbidden(String),
}
