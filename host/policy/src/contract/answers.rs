//! What a policy answers: the mapping, the plan, the refusal, the report.

use serde::{Deserialize, Serialize};

use super::{Json, Reference};

/// A key of a Secret or ConfigMap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeySelector {
    /// The Secret or ConfigMap.
    pub name: String,
    /// The key.
    pub key: String,
    /// Whether the pod starts without it.
    pub optional: bool,
}

/// Where a variable's value comes from at run time.
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
    /// Any other `valueFrom`, as Kubernetes spells it.
    Other(Json),
}

/// One environment variable of one container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvVar {
    /// The container's name.
    pub container: String,
    /// The variable's name.
    pub name: String,
    /// Its value.
    pub source: EnvSource,
    /// The path that the value came from.
    pub origin: String,
}

/// How much a note matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Severity {
    /// Good to know.
    Info,
    /// Probably not what the user wanted.
    Warning,
}

/// Something the user should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// How much it matters.
    pub severity: Severity,
    /// One CamelCase word.
    pub reason: String,
    /// For people.
    pub message: String,
    /// A path of the object.
    pub path: Option<String>,
}

/// What is waited for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocker {
    /// The object that is missing or not ready.
    pub on: Reference,
    /// One CamelCase word.
    pub reason: String,
    /// For people.
    pub message: String,
}

/// What Kubernetes should hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The objects.
    pub manifests: Vec<Json>,
    /// What binds until the plan was applied once in full.
    pub gates: Vec<Blocker>,
    /// The final mapping, after all merges.
    pub env: Vec<EnvVar>,
    /// What the user should know.
    pub notes: Vec<Note>,
    /// An object for what the contract has no field for.
    pub extra: Json,
}

/// What is wrong with a path of the object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// A path of the object.
    pub path: String,
    /// What is wrong and what to do.
    pub message: String,
}

/// No plan can be made; what exists stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Refusal {
    /// Until the object changes.
    Invalid(Vec<Violation>),
    /// Until one of these appears or changes.
    Waiting(Vec<Blocker>),
    /// Until the cluster or the policy changes.
    Unsupported(String),
}

impl Refusal {
    /// One CamelCase word.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "Invalid",
            Self::Waiting(_) => "Waiting",
            Self::Unsupported(_) => "Unsupported",
        }
    }
}

/// How far the host came with an object in a pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// The cluster holds the plan.
    Applied,
    /// The plan's gates still bind.
    Gated,
    /// There is no plan.
    Refused(Refusal),
    /// What the API server or the guard said.
    Failed(String),
}

/// A child as it is in the cluster now. A Secret has its keys, with empty values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Child {
    /// Which one.
    pub identity: Reference,
    /// Without one it is not there.
    pub live: Option<Json>,
}

/// What is really there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observation {
    /// How far the host came.
    pub outcome: Outcome,
    /// The children.
    pub children: Vec<Child>,
    /// Of this pass's plan.
    pub gates: Vec<Blocker>,
    /// Of this pass's plan.
    pub env: Vec<EnvVar>,
    /// Of this pass's plan.
    pub notes: Vec<Note>,
    /// As in [`Plan`].
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
    /// One CamelCase word.
    #[serde(rename = "type")]
    pub type_: String,
    /// Whether it holds.
    pub status: Truth,
    /// One CamelCase word.
    pub reason: String,
    /// For people.
    pub message: String,
}

/// What the host writes to status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Whether the object does its work.
    pub ready: bool,
    /// One word for the printer column.
    pub phase: String,
    /// For people.
    pub message: String,
    /// An object with every other field of the status.
    pub fields: Json,
    /// The policy's own conditions.
    pub conditions: Vec<Condition>,
    /// As in [`Plan`].
    pub extra: Json,
}
