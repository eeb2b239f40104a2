//! What the operator is to do, as far as it takes rights.

use std::collections::BTreeSet;

use super::Scope;

/// What the operator is to do, as far as it takes rights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Duties {
    /// Where it works.
    pub scope: Scope,
    /// Where it lives.
    pub operator_namespace: String,
    /// Whether it looks at Secrets.
    pub secrets: bool,
    /// Whether replicas elect one that writes.
    pub leader_election: bool,
    /// Whether namespaces other than its own may have policies.
    pub namespace_policies: bool,
}

impl Duties {
    /// The namespaces that Roles are for, if Roles are what there is to be.
    pub(crate) fn namespaces(&self) -> Option<&BTreeSet<String>> {
        match &self.scope {
            Scope::All => None,
            Scope::Listed(namespaces) => Some(namespaces),
        }
    }
}
