//! The names of the ConfigMaps that the operator reads and writes for its own settings.

/// The ConfigMap with the operator's settings, in the form of environment variables. The Go operator of KAOS also takes
/// its defaults from this ConfigMap.
pub(crate) const OPERATOR_CONFIG: &str = "kaos-operator-config";
/// The ConfigMap in which the operator stores the last good settings: the last valid content of [`OPERATOR_CONFIG`].
pub(crate) const FITTED_CONFIG: &str = "kaos-operator-config-fitted";
/// The beginning of the names of the ConfigMaps in which the operator records which objects are settled.
pub(crate) const SETTLED_CONFIG: &str = "kaos-operator-settled-";
