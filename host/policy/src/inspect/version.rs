//! The contract's version that this host supports, and the section of a component that contains the version.

/// The contract's version that this host supports. A policy's version can differ in the last number only.
pub(super) const HOST: &str = "0.1";
/// The custom section in which a policy stores the contract's version.
pub(super) const SECTION: &str = "kaos:policy";
