//! The verdict of a pass: a plan, a refusal or a failure.

use std::{collections::BTreeMap, sync::Arc};

use serde::Serialize;
use serde_json::Value;

use super::size;
use crate::{
    contract::{Blocker, EnvVar, Found, Note, Refusal},
    failure::Failure,
    policy::PolicyId,
};

/// The verdict of a pass.
#[derive(Debug, Clone)]
pub enum Verdict {
    /// The policy made a plan, and the guard let it pass.
    Planned(Arc<Planned>),
    /// A policy says that it can make no plan.
    Refused(Refusal),
    /// A policy failed. The children stay as they are.
    Failed(PolicyFailure),
}

/// A plan that the guard let pass.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Planned {
    /// The stamped manifests in the policy's order, exactly as the host applies them.
    pub manifests: Vec<Value>,
    /// The gates that hold back the first apply, until the plan was applied once in full.
    pub gates: Vec<Blocker>,
    /// The plan's mapping of variables.
    pub env: Vec<EnvVar>,
    /// The variables that overlays set, by container and name, with the number of the overlay; 1 is the lowest.
    #[serde(skip)]
    pub overlaid: BTreeMap<(String, String), usize>,
    /// Messages for the user.
    pub notes: Vec<Note>,
    /// The finalizer that the plan asks for, instead of the claim's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finalizer: Option<String>,
    /// Whether the gates also hold back changes to running workloads.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub gates_hold: bool,
}

/// The policy that failed, and its failure.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("policy {policy}: {failure}{}", .largest.as_ref().map(|largest| format!(": {largest}")).unwrap_or_default())]
pub struct PolicyFailure {
    /// The policy of the layer that failed.
    pub policy: PolicyId,
    /// The failure.
    pub failure: Box<Failure>,
    /// The largest part of the policy's input, if the failure is about size and the part is large.
    pub largest: Option<String>,
}

impl PolicyFailure {
    /// A failure of a policy that read this object and these found objects.
    pub(super) fn new(policy: &PolicyId, failure: Failure, object: &str, found: &[Found]) -> Self {
        let largest = if failure.is_of_size() { size::largest(object, found) } else { None };
        Self { policy: policy.clone(), failure: Box::new(failure), largest }
    }
}
