//! The least rights that the operator needs: its own, and those that the claims of the policies come to.
//!
//! Which rights a rule gives is in `rules`, where they are given in `manifests`. Both are pure: what `kaos-operator rbac`
//! prints is what the chart contains. A type's plural is the one that its embedded definition says, or else the usual one.

mod manifests;
mod rule;
mod rules;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

pub use manifests::{AGGREGATED, further, manifests};
pub use rule::Rule;
pub use rules::{Rights, claimed, rules};

pub use crate::watch::Scope;

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
