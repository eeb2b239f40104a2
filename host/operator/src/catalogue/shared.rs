//! Settings that hold everywhere: those of the process's environment, and of the operator's own ConfigMap.

use std::ffi::OsString;

use k8s_openapi::api::core::v1::ConfigMap;
use kaos_policy::settings::{Layer, Origin};

/// The ConfigMap that the Go operator takes its defaults from, as variables.
pub const OPERATOR_CONFIG: &str = "kaos-operator-config";
/// The ConfigMap in which the operator keeps what that one held when everything fitted last.
pub const FITTED_CONFIG: &str = "kaos-operator-config-fitted";

/// Environment variables as a layer of settings. What is no text feeds no setting.
pub fn environment(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Layer {
    let text = |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
    Layer::env(Origin::Environment, variables.into_iter().filter_map(text))
}

/// What stands in [`OPERATOR_CONFIG`], or did when it fitted, as a layer of settings.
pub fn operator_config(config_map: &ConfigMap) -> Layer {
    Layer::env(Origin::OperatorConfig, config_map.data.clone().unwrap_or_default())
}
