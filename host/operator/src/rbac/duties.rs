//! The options of the operator that decide its rights.

use std::collections::BTreeSet;

use super::Scope;
use crate::left_out::LeftOut;

/// The options of the operator that decide its rights.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent option")]
pub struct Duties {
    /// The namespaces in which the operator reconciles objects.
    pub scope: Scope,
    /// The namespace in which the operator runs.
    pub operator_namespace: String,
    /// Whether the operator reads Secrets.
    pub secrets: bool,
    /// Whether replicas elect a leader.
    pub leader_election: bool,
    /// Whether the operator installs packages from namespaces other than its own.
    pub namespace_policies: bool,
    /// Optional types of claims that the operator neither watches nor applies.
    pub left_out: LeftOut,
    /// Whether the operator writes the objects for the decision point.
    pub decision_point: bool,
}

impl Duties {
    /// Returns the namespaces that get a Role each. Returns `None` if the operator gets a `ClusterRole` instead.
    pub(crate) fn namespaces(&self) -> Option<&BTreeSet<String>> {
        match &self.scope {
            Scope::All => None,
            Scope::Listed(namespaces) => Some(namespaces),
        }
    }
}
