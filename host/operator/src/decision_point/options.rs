//! The options of the decision point.

use std::collections::BTreeSet;

use kaos_crds::access::AuthorizationPolicySpec;

/// What the operator keeps for the decision point.
#[derive(Debug, Clone, PartialEq)]
pub struct DecisionPoint {
    /// The spec of the AuthorizationPolicy. If it lists no namespaces, the operator lists all namespaces with objects.
    pub spec: AuthorizationPolicySpec,
    /// Whether the release has a decision point, with the Service `kaos-pdp`. Then SecurityPolicies need `ReferenceGrants`.
    pub is_served: bool,
}

impl DecisionPoint {
    /// Returns the namespaces that the user listed.
    pub(super) fn listed(&self) -> BTreeSet<String> {
        self.spec.namespaces.iter().cloned().collect()
    }
}
