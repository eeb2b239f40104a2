//! The names of the ConfigMaps that the operator reads and keeps for itself.

/// The ConfigMap with variables from which the Go operator takes its defaults.
pub(crate) const OPERATOR_CONFIG: &str = "kaos-operator-config";
/// The ConfigMap in which the operator keeps the last content of [`OPERATOR_CONFIG`] that fitted.
pub(crate) const FITTED_CONFIG: &str = "kaos-operator-config-fitted";
