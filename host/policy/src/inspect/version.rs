//! The contract's version: the one of this host, and the place where a component names its own.

/// The contract's version that this host supports. A policy's version may differ in the last number only.
pub(super) const HOST: &str = "0.1";
/// The custom section with the contract's version of a policy.
pub(super) const SECTION: &str = "kaos:policy";
