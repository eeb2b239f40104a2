//! The verdict of a pass: a plan, a refusal or a failure.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{amended::SetBy, size};
use crate::{
    contract::{Blocker, EnvVar, Found, Note, Origin, Reference, Refusal},
    failure::Failure,
    policy::PolicyId,
};

/// The verdict of a pass.
#[derive(Debug, Clone)]
pub enum Verdict {
    /// The policy returned a plan, and the guard accepted the plan.
    Planned(Arc<Planned>),
    /// A policy refused: the policy returned a reason instead of a plan.
    Refused(Refusal),
    /// A policy failed. The operator leaves the children as they are.
    Failed(PolicyFailure),
}

/// A plan that the guard accepted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Planned {
    /// The stamped manifests in the policy's order, exactly as the host applies them.
    pub manifests: Vec<Value>,
    /// The origins of values in the manifests, as the layers declare them.
    #[serde(skip)]
    pub origins: Vec<Origin>,
    /// The plan gates, which hold back the first apply. After one complete apply, the plan gates hold back changes only
    /// if `gates_hold` is set.
    pub gates: Vec<Blocker>,
    /// The plan's mapping of variables.
    pub env: Vec<EnvVar>,
    /// The variables that overlays set, by container and name. The value is the number of the overlay; 1 is the lowest
    /// overlay.
    #[serde(skip)]
    pub overlaid: BTreeMap<(String, String), usize>,
    /// The children that each overlay changed or added, the lowest overlay first.
    #[serde(skip)]
    pub amended: Vec<Vec<Reference>>,
    /// For each child, the overlays that set values in the child's manifest.
    #[serde(skip)]
    pub set_by: SetBy,
    /// Messages for the user.
    pub notes: Vec<Note>,
    /// The finalizer that the plan requests instead of the claim's finalizer. `None` keeps the claim's finalizer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finalizer: Option<String>,
    /// Whether the plan gates also hold back later changes to workloads that already run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gates_hold: bool,
}

/// The policy that failed, and its failure.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("policy {policy}: {failure}{}", .largest.as_ref().map(|largest| format!(": {largest}")).unwrap_or_default())]
pub struct PolicyFailure {
    /// The identity of the policy that failed.
    pub policy: PolicyId,
    /// The failure.
    pub failure: Box<Failure>,
    /// The largest part of the policy's input. `None` if no limit caused the failure, or if even the largest part is
    /// small.
    pub largest: Option<String>,
}

impl PolicyFailure {
    /// Creates a failure of a policy. `object` and `found` are the texts that the policy read.
    pub(super) fn new(policy: &PolicyId, failure: Failure, object: &str, found: &[Found]) -> Self {
        let largest = if failure.is_of_size() { size::largest(object, found) } else { None };
        Self { policy: policy.clone(), failure: Box::new(failure), largest }
    }
}
