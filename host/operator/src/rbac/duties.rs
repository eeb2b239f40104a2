//! The options of the operator that decide its rights.

use std::collections::BTreeSet;

use super::Scope;
use crate::left_out::LeftOut;

/// The options of the operator that decide its rights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Duties {
    /// The namespaces that it works in.
    pub scope: Scope,
    /// The namespace that it runs in.
    pub operator_namespace: String,
    /// Whether it reads Secrets.
    pub secrets: bool,
    /// Whether replicas elect a leader.
    pub leader_election: bool,
    /// Whether namespaces other than its own may have policies.
    pub namespace_policies: bool,
    /// Optional types that it leaves alone.
    pub left_out: LeftOut,
}

impl Duties {
    /// Returns the namespaces that get a Role each. `None` if the operator gets a `ClusterRole`.
    pub(crate) fn namespaces(&self) -> Option<&BTreeSet<String>> {
        match &self.scope {
            Scope::All => None,
            Scope::Listed(namespaces) => Some(namespaces),
        }
    }
}
