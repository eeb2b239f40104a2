//! Maps the variables: parameters, the user's variables, telemetry, log level.

use alloc::vec::Vec;
use kaos_policy_sdk::env::{Env, literal, secret_key};
use kaos_policy_sdk::quote::unexpanded;
use kaos_policy_sdk::types::{EnvSource, EnvVar, KeySelector, Refusal, Subject};
use serde_json::Value;

use crate::request::{KIND, Request, workload};
use crate::wanted::Params;

/// Returns the mapping of `subject`. `base` is the mapping of the layer below. For the lowest layer, `base` is empty.
pub(crate) fn map(subject: &Subject, base: Vec<EnvVar>) -> Result<Vec<EnvVar>, Refusal> {
    let request = Request::of(subject)?;
    let mut mapping = Env::over(base);
    let mut env = mapping.container(KIND.container);
    if let (Some(variable), Some(params)) = (&request.launch.params_env_var, &request.wanted.params) {
        // The registry names the variable for the parameters, so they win over a value that the policy sets.
        match params {
            Params::Text { text, path } => env.hold(variable, literal(unexpanded(text)), path),
            Params::Secret { key, path } => env.hold(variable, secret(key), path),
        };
    }
    for path in [&["spec", "config", "env"], &["spec", "container", "env"]] {
        let list = request.object.at(path).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        env.user(list, &path.join("."))?;
    }
    let telemetry = request.telemetry();
    telemetry.set_env(&mut env, &workload(&request.object, subject), &request.settings.telemetry.excluded_urls);
    env.set("LOG_LEVEL", request.settings.log_level.as_str(), "settings.logLevel");
    Ok(mapping.into_vars())
}

fn secret(key: &kaos_crds::KeySelector) -> EnvSource {
    match secret_key(&key.name, &key.key) {
        EnvSource::SecretKey(selector) => {
            EnvSource::SecretKey(KeySelector { optional: key.optional.unwrap_or_default(), ..selector })
        }
        other => other,
    }
}
