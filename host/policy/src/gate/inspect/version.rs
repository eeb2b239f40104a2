//! Where a component says which version of the contract it speaks, and which this host speaks.

/// The version that this host speaks. Within it only the last number may differ.
pub(super) const HOST: &str = "0.1";
/// The custom section that says which version a policy speaks.
pub(super) const SECTION: &str = "kaos:policy";
