//! The status of the kinds that have no workload.

use alloc::collections::BTreeMap;
use alloc::{string::String, vec::Vec};

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Condition, Phase, PolicyStatus};

/// The observed state. Only the operator writes this state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AccessStatus {
    /// The state of the object, in one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// Whether the object is in effect.
    #[serde(default)]
    pub ready: bool,
    /// The reason for the state, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// For an AuthorizationPolicy: the AccessGrants in the decision point's data, as namespace/name, each with its
    /// generation.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub grants: BTreeMap<String, i64>,
    /// The generation of the object that this status describes. -1 before the first pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The newest generation whose children the operator applied in full.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applied_generation: Option<i64>,
    /// The policy that made the plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyStatus>,
    /// The state in detail, one entry for each type: Accepted, Resolved, Applied, Ready, and for an AccessGrant
    /// Enforced. Reconciling is present while the operator progresses or waits, and Stalled while a person must act.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(
        feature = "schema",
        schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))
    )]
    pub conditions: Vec<Condition>,
}
