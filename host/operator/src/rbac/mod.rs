//! The least rights that the operator needs: its own, and those that the claims of the policies come to.
//!
//! Which rights a rule gives is in `rules`, where they are given in `manifests`. Both are pure: what `kaos-operator rbac`
//! prints is what the chart contains. A type's plural is the one that its embedded definition says, or else the usual one.

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
