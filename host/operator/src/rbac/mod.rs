//! Computes the minimal rights that the operator needs: the rights of the host, and the rights that the claims of its
//! policies require.
//!
//! `rules` computes the rules, and `manifests` writes them into Kubernetes objects. Neither module reads a cluster, so
//! the chart can contain the same rules that `kaos-operator rbac` prints. The plural of a type comes from its embedded
//! CRD. Without such a CRD, the module forms the English plural of the kind.

mod duties;
mod manifests;
mod rule;
mod rules;
#[cfg(test)]
mod tests;

pub use duties::Duties;
pub use manifests::{AGGREGATED, further, manifests};
pub use rule::Rule;
pub use rules::{Rights, claimed, rules};

pub use crate::watch::Scope;
