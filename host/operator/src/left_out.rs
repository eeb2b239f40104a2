//! Optional types that the owner excluded, so the operator does not use them.

use std::collections::BTreeSet;

use kaos_policy::contract::{Claim, ResourceType};

use crate::group_kind::GroupKind;

/// Optional types that the operator neither watches nor applies, and for which it needs no rights. Policies treat these
/// types as if the cluster did not serve them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeftOut(BTreeSet<GroupKind>);

impl LeftOut {
    /// Creates the set of types that the operator leaves out.
    pub fn new(kinds: impl IntoIterator<Item = GroupKind>) -> Self {
        Self(kinds.into_iter().collect())
    }

    /// Returns whether the operator ignores a type for a claim. Only an optional type of the claim can be ignored. The
    /// field `wishes` of the claim lists its optional types.
    pub fn has(&self, claim: &Claim, of: &ResourceType) -> bool {
        claim.wishes.contains(of) && self.0.contains(&GroupKind::from(of))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_optional_types_of_a_claim_are_left_out() {
        let of = |api_version: &str, kind: &str| ResourceType::new(api_version, kind);
        let network = of("networking.k8s.io/v1", "NetworkPolicy");
        let claim = Claim {
            primary: of("test.example.com/v1", "Widget"),
            emits: vec![of("v1", "Service"), network.clone()],
            reads: Vec::new(),
            wishes: vec![network.clone()],
            finalizer: None,
            samples: Vec::new(),
            extra: "{}".to_owned(),
        };
        let left_out = LeftOut::new(["NetworkPolicy.networking.k8s.io", "Service"].map(|kind| kind.parse().unwrap()));
        assert!(left_out.has(&claim, &network));
        assert!(!left_out.has(&claim, &of("v1", "Service")), "the claim needs it");
        assert!(!LeftOut::default().has(&claim, &network));
        assert!(!LeftOut::new(["NetworkPolicy".parse().unwrap()]).has(&claim, &network), "this kind has another group");
    }
}
