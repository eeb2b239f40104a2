//! The answers of a policy: the mapping, the plan, the refusal and the report.

use serde::{Deserialize, Serialize};

use super::{Json, Reference};

/// A key of a Secret or ConfigMap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeySelector {
    /// The name of the Secret or ConfigMap.
    pub name: String,
    /// The key.
    pub key: String,
    /// Whether the pod can start if the key is missing.
    pub optional: bool,
}

/// The source from which Kubernetes takes a variable's value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum EnvSource {
    /// The value itself.
    Literal(String),
    /// A key of a Secret.
    SecretKey(KeySelector),
    /// A key of a ConfigMap.
    ConfigMapKey(KeySelector),
    /// A field of the pod.
    FieldPath(String),
    /// Any other `valueFrom`, as the JSON that Kubernetes expects.
    Other(Json),
}

/// An environment variable of a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvVar {
    /// The container's name.
    pub container: String,
    /// The variable's name.
    pub name: String,
    /// The source of the variable's value.
    pub source: EnvSource,
    /// The path from which the value comes: in the object, in the settings or in a found object.
    pub origin: String,
}

/// The origin of a value in a manifest, and of the values below it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The position of the manifest in the plan.
    pub manifest: u32,
    /// The path in the manifest.
    pub path: String,
    /// The path from which the value comes: in the object, in the settings or in a found object.
    pub from: String,
}

/// The severity of a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Severity {
    /// The note is for information only.
    Info,
    /// The object is probably not what the user intended.
    Warning,
}

/// A message for the user. The message does not hold back the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// The severity.
    pub severity: Severity,
    /// The reason: one CamelCase word.
    pub reason: String,
    /// The message for people.
    pub message: String,
    /// The path of the field that the note is about. The path begins at the object's root.
    pub path: Option<String>,
}

/// An object that the policy or the first apply waits for, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocker {
    /// The object that is missing or not ready.
    pub on: Reference,
    /// The reason: one CamelCase word.
    pub reason: String,
    /// The message for people.
    pub message: String,
}

/// The children that Kubernetes should have for an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The manifests of the children.
    pub manifests: Vec<Json>,
    /// The origins of values in the manifests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub origins: Vec<Origin>,
    /// The plan gates: they hold back the first apply of the plan. After one complete apply, the host only reports the
    /// plan gates, unless `gates_hold` is set.
    pub gates: Vec<Blocker>,
    /// The final mapping, after all merges.
    pub env: Vec<EnvVar>,
    /// Messages for the user.
    pub notes: Vec<Note>,
    /// The finalizer that the operator sets on the object instead of the claim's finalizer. `None` keeps the claim's
    /// finalizer.
    pub finalizer: Option<String>,
    /// The names of those PersistentVolumeClaims in the plan that outlive the object.
    pub kept: Vec<String>,
    /// Whether the plan gates also hold back later changes to workloads that already run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gates_hold: bool,
    /// A JSON object for data that the contract has no field for.
    pub extra: Json,
}

/// A problem with one field of the object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// The path of the wrong field in the object.
    pub path: String,
    /// The problem with this field, and how the user can solve it.
    pub message: String,
}

/// A policy's answer without a plan. After a refusal, the operator leaves the children as they are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Refusal {
    /// The object is invalid. The policy gives a plan only after a change of the object.
    Invalid(Vec<Violation>),
    /// The policy waits until one of these objects appears or changes.
    Waiting(Vec<Blocker>),
    /// The cluster or the policy does not support the object. The policy gives a plan only after a change of the
    /// cluster or of the policy.
    Unsupported(String),
}

impl Refusal {
    /// The reason of the refusal: one CamelCase word.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "Invalid",
            Self::Waiting(_) => "Waiting",
            Self::Unsupported(_) => "Unsupported",
        }
    }
}

/// The result of a pass, as input for the policy's assessment of the children.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// The host applied the plan.
    Applied,
    /// The plan gates hold back this plan: the first apply or, with `gates_hold`, a change of running children.
    Gated,
    /// The policy refused, so there is no plan.
    Refused(Refusal),
    /// The pass failed. The text is the message of the API server or of the guard.
    Failed(String),
}

/// A child in the cluster. If the child is a Secret, `live` contains all keys, but an empty text instead of each value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Child {
    /// The child's type and name.
    pub identity: Reference,
    /// The live object; `None` if the child does not exist in the cluster.
    pub live: Option<Json>,
}

/// The state that a policy assesses: the outcome of the pass, and the live children.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observation {
    /// The result of the pass.
    pub outcome: Outcome,
    /// The children.
    pub children: Vec<Child>,
    /// The plan gates of this pass's plan.
    pub gates: Vec<Blocker>,
    /// The mapping of this pass's plan.
    pub env: Vec<EnvVar>,
    /// The notes of this pass's plan.
    pub notes: Vec<Note>,
    /// A JSON object for data that the contract has no field for.
    pub extra: Json,
}

/// The status of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Truth {
    /// `True`.
    #[serde(rename = "True")]
    Yes,
    /// `False`.
    #[serde(rename = "False")]
    No,
    /// `Unknown`.
    #[serde(rename = "Unknown")]
    Unknown,
}

/// A condition of the object's status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// The condition's type: one CamelCase word.
    #[serde(rename = "type")]
    pub type_: String,
    /// Whether the condition is true.
    pub status: Truth,
    /// The reason: one CamelCase word.
    pub reason: String,
    /// The message for people.
    pub message: String,
}

/// A policy's report for the object's status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Whether the object works.
    pub ready: bool,
    /// The phase: one word for the printer column.
    pub phase: String,
    /// The message for people.
    pub message: String,
    /// A JSON object with every other field of the status.
    pub fields: Json,
    /// The policy's own conditions.
    pub conditions: Vec<Condition>,
    /// A JSON object for data that the contract has no field for.
    pub extra: Json,
}
