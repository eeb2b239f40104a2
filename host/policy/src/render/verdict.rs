//! What a pass comes to: a plan, a refusal, or a failure.

use std::{collections::BTreeMap, sync::Arc};

use serde::Serialize;
use serde_json::Value;

use super::size;
use crate::{
    contract::{Blocker, EnvVar, Found, Json, Note, Refusal},
    failure::Failure,
    policy::PolicyId,
};

/// What was decided.
#[derive(Debug, Clone)]
pub enum Verdict {
    /// There is a plan, and the guard let it pass.
    Planned(Arc<Planned>),
    /// A policy says that there can be no plan.
    Refused(Refusal),
    /// A policy did not answer as it must. What exists stays as it is.
    Failed(PolicyFailure),
}

/// What Kubernetes should hold.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Planned {
    /// The manifests, stamped: exactly what is to be applied, in the policy's order.
    pub manifests: Vec<Value>,
    /// What binds until the plan was applied once in full.
    pub gates: Vec<Blocker>,
    /// The mapping that the manifests carry.
    pub env: Vec<EnvVar>,
    /// Container and name of each variable that overlays gave, and which: 1 is the lowest.
    #[serde(skip)]
    pub overlaid: BTreeMap<(String, String), usize>,
    /// What the user should know.
    pub notes: Vec<Note>,
    /// As in the contract.
    pub extra: Json,
}

/// Which policy failed, and how.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("policy {policy}: {failure}{}", .largest.as_ref().map(|largest| format!(": {largest}")).unwrap_or_default())]
pub struct PolicyFailure {
    /// The layer that failed.
    pub policy: PolicyId,
    /// How.
    pub failure: Box<Failure>,
    /// Where a pass has too little room: the largest part of what the policy reads, where that is large.
    pub largest: Option<String>,
}

impl PolicyFailure {
    /// A failure over an object and what was found beside it.
    pub(super) fn new(policy: &PolicyId, failure: Failure, object: &str, found: &[Found]) -> Self {
        let largest = if failure.is_of_size() { size::largest(object, found) } else { None };
        Self { policy: policy.clone(), failure: Box::new(failure), largest }
    }
}
