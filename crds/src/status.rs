//! The status that the kinds share. The type declares every field that the operator writes, because server-side apply
//! refuses a status with an undeclared field.

use alloc::collections::BTreeMap;
use alloc::{string::String, vec::Vec};

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The value of `observedGeneration` before the first pass of an object. The CustomResourceDefinitions give this value
/// to every new object, so that tools do not treat the object's status as current.
pub const NOT_OBSERVED: i64 = -1;

/// The observed state. Only the operator writes this state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// The state of the object, in one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// Whether the workload serves: the current generation is rolled out, and at least one of its pods is available.
    #[serde(default)]
    pub ready: bool,
    /// The reason for the state, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The base URL inside the cluster. Absent when the workload is not exposed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// The objects that this object uses, by role. For an Agent: its ModelAPI, its MCPServers and its peers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub linked_resources: BTreeMap<String, String>,
    /// The tools that an MCPServer offers, if the operator knows them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub available_tools: Vec<String>,
    /// The rollout of the Deployment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployment: Option<DeploymentStatus>,
    /// The number of pods that exist. The scale subresource reads this number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// The label selector of the pods, as text. The scale subresource and autoscalers read this selector.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    /// The generation of the object that this status describes. -1 before the first pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The newest generation whose children the operator applied in full. Once this field is set, the operator reports
    /// missing or unready dependencies, but no longer waits for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applied_generation: Option<i64>,
    /// The policy that made the plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyStatus>,
    /// The state in detail, one entry for each type: Accepted, Resolved, Applied, Ready, and types of the policy, such
    /// as DependenciesReady or Deprecated. Reconciling is present while the operator progresses or waits, and Stalled
    /// while a person must act.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(
        feature = "schema",
        schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))
    )]
    pub conditions: Vec<Condition>,
}

/// The state of the object, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub enum Phase {
    /// The rollout of the workload is in progress.
    Pending,
    /// The workload serves.
    Ready,
    /// The object cannot be translated or applied. The message names the remedy.
    Failed,
    /// An object that this object refers to is missing or not ready.
    Waiting,
}

impl Phase {
    /// Returns this value as a status spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Ready => "Ready",
            Self::Failed => "Failed",
            Self::Waiting => "Waiting",
        }
    }
}

/// The rollout of the Deployment, from the Deployment's status.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DeploymentStatus {
    /// The number of pods that exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// The number of ready pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready_replicas: Option<i32>,
    /// The number of pods that have been ready for at least minReadySeconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available_replicas: Option<i32>,
    /// The number of pods of the current template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_replicas: Option<i32>,
    /// The Deployment's own conditions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// A condition of the object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// The type of the condition.
    #[serde(rename = "type")]
    pub type_: String,
    /// Whether the condition holds: True, False or Unknown.
    #[cfg_attr(feature = "schema", schemars(extend("enum" = ["True", "False", "Unknown"])))]
    pub status: String,
    /// The reason, in one word for programs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The reason, in a sentence for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The time of the last change of the status.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub last_transition_time: Option<String>,
    /// The generation of the object that the condition describes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// The policy that made the plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PolicyStatus {
    /// The name of the policy.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The version of the policy.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// The digest of the policy's bytes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub digest: String,
}
