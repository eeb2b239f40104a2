//! Settings for the whole cluster: the process environment and the operator's own ConfigMap.

use std::{collections::BTreeMap, ffi::OsString};

use k8s_openapi::api::core::v1::ConfigMap;
use kaos_policy::settings::{Content, Layer, Origin};

/// Turns environment variables into a settings layer. Skips variables that are not valid Unicode.
pub fn environment(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Layer {
    let text = |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
    Layer::env(Origin::Environment, variables.into_iter().filter_map(text))
}

/// Turns the operator's own ConfigMap, or its stored copy, into a settings layer.
pub fn operator_config(config_map: &ConfigMap) -> Layer {
    Layer::env(Origin::OperatorConfig, config_map.data.clone().unwrap_or_default())
}

/// If variables in the environment's layer are copies from the operator's own ConfigMap, moves these variables to a new
/// layer. The chart puts the whole ConfigMap into the environment of the pod, because the operator reads flags from the
/// environment. For settings, the operator reads the ConfigMap itself while the process runs. A copy from startup must
/// not override the ConfigMap, especially if the copied values do not fit the policies.
pub fn told_apart(mut settings: Vec<Layer>, config_map: &ConfigMap) -> Vec<Layer> {
    let Some(data) = &config_map.data else { return settings };
    let mut copies: BTreeMap<String, String> = BTreeMap::new();
    for layer in settings.iter_mut().filter(|layer| layer.origin == Origin::Environment) {
        if let Content::Env(variables) = &mut layer.content {
            let (copied, own): (BTreeMap<_, _>, _) =
                std::mem::take(variables).into_iter().partition(|(name, value)| data.get(name) == Some(value));
            *variables = own;
            copies.extend(copied);
        }
    }
    if !copies.is_empty() {
        settings.push(Layer::env(Origin::OperatorConfig, copies));
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(variables: &[(&str, &str)]) -> BTreeMap<String, String> {
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn values_of_the_config_map_in_the_environment_are_no_settings_of_the_environment() {
        let config_map = ConfigMap {
            data: Some(variables(&[("COPIED", "1"), ("CHANGED", "new"), ("ELSEWHERE", "1")])),
            ..ConfigMap::default()
        };
        let environment = variables(&[("COPIED", "1"), ("CHANGED", "old"), ("OWN", "1")]);
        let told = told_apart(vec![Layer::env(Origin::Environment, environment.clone())], &config_map);
        let own = Layer::env(Origin::Environment, variables(&[("CHANGED", "old"), ("OWN", "1")]));
        assert_eq!(told, [own, Layer::env(Origin::OperatorConfig, variables(&[("COPIED", "1")]))]);
        let alone = vec![Layer::env(Origin::Environment, environment)];
        assert_eq!(told_apart(alone.clone(), &ConfigMap::default()), alone);
    }
}
