//! The contract's version: the version of this host, and the place of the version in a component.

/// The contract's version that this host supports. A policy's version may differ in the last number only.
pub(super) const HOST: &str = "0.1";
/// The custom section with the contract's version of a policy.
pub(super) const SECTION: &str = "kaos:policy";
