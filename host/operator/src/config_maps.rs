//! The names of the ConfigMaps that the operator reads and writes for its own settings.

/// The operator's own ConfigMap of settings, with variables. The Go operator of KAOS also takes its defaults from this
/// ConfigMap.
pub(crate) const OPERATOR_CONFIG: &str = "kaos-operator-config";
/// The ConfigMap in which the operator stores the last good settings: the last valid content of [`OPERATOR_CONFIG`].
pub(crate) const FITTED_CONFIG: &str = "kaos-operator-config-fitted";
