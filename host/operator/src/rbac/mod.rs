//! Computes the minimal rights that the operator needs: the rights of the host, and the rights that the claims of its
//! policies require.
//!
//! `rules` computes the rules, and `manifests` writes them into Kubernetes objects. Both modules contain only pure
//! functions, so the chart contains the same rules that `kaos-operator rbac` prints. The plural of a type comes from
//! its embedded CRD. Without such a CRD, the plural follows the usual rules of English.

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
