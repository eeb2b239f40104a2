//! The contract's version that this host supports, and the place of the version in a component.

/// The contract's version that this host supports. A policy's version may differ in the last number only.
pub(super) const HOST: &str = "0.1";
/// The custom section in which a policy stores the contract's version.
pub(super) const SECTION: &str = "kaos:policy";
