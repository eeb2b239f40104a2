//! The options of the decision point.

use std::collections::BTreeSet;

use kaos_crds::access::AuthorizationPolicySpec;

/// The options for the objects that the operator writes for the decision point.
#[derive(Debug, Clone, PartialEq)]
pub struct DecisionPoint {
    /// The spec of the AuthorizationPolicy. If the spec lists no namespaces, the operator chooses the namespaces.
    pub spec: AuthorizationPolicySpec,
    /// Whether the release has a decision point, with the Service `kaos-pdp`. If the release has a decision point,
    /// SecurityPolicies need `ReferenceGrants`.
    pub is_served: bool,
}

impl DecisionPoint {
    /// Returns the namespaces that the user listed.
    pub(super) fn listed(&self) -> BTreeSet<String> {
        self.spec.namespaces.iter().cloned().collect()
    }
}
