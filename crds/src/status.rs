//! The status that the kinds share. It declares every field that the operator writes: server-side apply refuses a
//! status with an undeclared field.

use alloc::collections::BTreeMap;
use alloc::{string::String, vec::Vec};

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the operator found and did. Written by the operator alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// Where the object stands, in one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// Whether the workload serves: the current generation is rolled out and at least one of its pods is available.
    #[serde(default)]
    pub ready: bool,
    /// What happens or what is wrong, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The base URL inside the cluster. Absent when the workload is not exposed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// The objects that this one uses, by role: for an Agent its ModelAPI, its MCPServers and its peers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub linked_resources: BTreeMap<String, String>,
    /// The tools that an MCPServer offers, where the operator can tell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub available_tools: Vec<String>,
    /// The rollout of the Deployment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployment: Option<DeploymentStatus>,
    /// The pods that exist now; read by the scale subresource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// The label selector of the pods, as text; read by the scale subresource and by autoscalers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    /// The generation of the object that this status speaks of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The last generation whose children were all applied. From the first one on, dependencies that are
    /// missing or not ready are reported but hold nothing back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applied_generation: Option<i64>,
    /// The policy that decided what runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyStatus>,
    /// The state in detail, one entry a type: Accepted, Resolved, Applied, Ready, and what the policy adds,
    /// such as DependenciesReady or Deprecated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(
        feature = "schema",
        schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))
    )]
    pub conditions: Vec<Condition>,
}

/// Where an object stands, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub enum Phase {
    /// The workload is being rolled out.
    Pending,
    /// The workload serves.
    Ready,
    /// The object cannot be carried out as it is; the message says what to change.
    Failed,
    /// Something that the object refers to is missing or not ready.
    Waiting,
}

impl Phase {
    /// The value in a status.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Ready => "Ready",
            Self::Failed => "Failed",
            Self::Waiting => "Waiting",
        }
    }
}

/// The rollout of the Deployment, as its own status tells it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DeploymentStatus {
    /// The pods that exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// The pods that are ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready_replicas: Option<i32>,
    /// The pods that have been ready for long enough to count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available_replicas: Option<i32>,
    /// The pods of the current template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_replicas: Option<i32>,
    /// The Deployment's own conditions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// One aspect of the state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What the condition is about.
    #[serde(rename = "type")]
    pub type_: String,
    /// Whether it holds: True, False or Unknown.
    #[cfg_attr(feature = "schema", schemars(extend("enum" = ["True", "False", "Unknown"])))]
    pub status: String,
    /// Why, in one word for programs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Why, in a sentence for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// When the status last changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub last_transition_time: Option<String>,
    /// The generation of the object that the condition speaks of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// Which policy decided what runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PolicyStatus {
    /// The name of the policy.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Its own version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// The digest of its bytes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub digest: String,
}
