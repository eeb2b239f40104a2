//! The proxy: its configuration file, the volume with this file, and the arguments that name the file.

use alloc::{
    borrow::ToOwned,
    string::{String, ToString},
    vec::Vec,
};
use kaos_policy_sdk::quote::yaml_scalar;
use kaos_policy_sdk::types::{Note, Refusal};
use kaos_policy_sdk::{note, object, refusal};
use kaos_workload::{Extra, Workload, bounds};
use serde_json::Value;

use crate::config_yaml::{self, Oddity};
use crate::litellm::ProxyModels;
use crate::providers::{Config, Proxy};
use crate::settings::{ProxyConfigFile, Server};

/// The reason code of the note on a configuration without models.
pub(crate) const NO_MODELS: &str = "NoModels";

/// The reason code of the note on a configuration that exports no telemetry although telemetry is enabled.
pub(crate) const NO_CALLBACK: &str = "TelemetryNoCallback";

/// The maximum size in bytes of a configuration in the object. The policy refuses a longer text, because parsing takes
/// much fuel.
const READ: usize = 150_000;

/// The arguments, the volume and the mount that a proxy adds to its pod, and the proxy's ConfigMap.
pub(crate) struct ProxyParts {
    pub(crate) args: Vec<String>,
    pub(crate) volume: Value,
    pub(crate) mount: Value,
    /// The ConfigMap with the configuration file. `None` if the file is in the user's Secret.
    pub(crate) config_map: Option<Value>,
}

impl ProxyParts {
    /// Builds the parts of `proxy`. Refuses the user's configuration file if the file is invalid.
    pub(crate) fn of(
        proxy: &Proxy,
        telemetry: bool,
        server: &Server,
        file: &ProxyConfigFile,
        workload: &Workload<'_>,
        extra: &Extra<'_>,
        notes: &mut Vec<Note>,
    ) -> Result<Self, Refusal> {
        let config_map_name = format!("litellm-config-{}", workload.name);
        let text = match &proxy.config {
            Config::Generated => {
                let text = generated(proxy, telemetry, file);
                bounds::check_file("spec.proxyConfig.models", &text)?;
                Some(text)
            }
            Config::Text { text, path } => {
                let callback = telemetry.then_some(file.telemetry_callback.as_str());
                checked(text, path, &proxy.models, callback, notes)?;
                Some(text.clone())
            }
            Config::Secret(_) => None,
        };
        let source = match &proxy.config {
            Config::Secret(key) => {
                let item = object! { "key": key.key.as_str(), "path": file.file_name.as_str() };
                let mut secret = object! { "secretName": key.name.as_str(), "items": vec![item] };
                if let Some(optional) = key.optional {
                    secret["optional"] = optional.into();
                }
                ("secret", secret)
            }
            Config::Generated | Config::Text { .. } => ("configMap", object! { "name": config_map_name.as_str() }),
        };
        let mut volume = object! { "name": file.volume_name.as_str() };
        volume[source.0] = source.1;
        let port = server.container_port.to_string();
        let path = format!("{}/{}", file.mount_path.trim_end_matches('/'), file.file_name);
        let mut args: Vec<String> = ["--config", &path, "--port", &port].map(str::to_owned).into();
        args.extend(file.extra_args.iter().cloned());
        let config_map = text.map(|text| {
            let mut data = serde_json::Map::new();
            data.insert(file.file_name.clone(), text.into());
            object! {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": workload.metadata(&config_map_name, extra),
                "data": data,
            }
        });
        let mount = object! { "name": file.volume_name.as_str(), "mountPath": file.mount_path.as_str() };
        Ok(Self { args, volume, mount, config_map })
    }
}

fn generated(proxy: &Proxy, telemetry: bool, file: &ProxyConfigFile) -> String {
    let models = ProxyModels {
        models: &proxy.models,
        provider: proxy.provider.as_deref(),
        has_api_base: proxy.api_base.is_some(),
        has_api_key: proxy.api_key.is_some(),
        telemetry,
    };
    models.render(file)
}

fn checked(
    text: &str,
    path: &str,
    models: &[String],
    callback: Option<&str>,
    notes: &mut Vec<Note>,
) -> Result<(), Refusal> {
    let remedy = "write a shorter text, or store the text in a Secret and name the Secret in fromSecretKeyRef";
    bounds::within(path, text.len(), "bytes", READ, remedy)?;
    let oddities = config_yaml::check(text, models, callback);
    let oddities = oddities.map_err(|error| refusal::invalid(path, error.to_string()))?;
    notes.extend(oddities.into_iter().map(|oddity| {
        let note = match oddity {
            Oddity::NoModels => note::warning(
                NO_MODELS,
                "configYaml has no model_list, so the proxy offers no model: add one entry for each model",
            ),
            Oddity::Nameless(index) => note::warning(
                "ModelNameless",
                format!("model_list[{index}] in configYaml has no model_name, so no Agent can request this model: add a model_name"),
            ),
            Oddity::NoCallback => {
                note::warning(NO_CALLBACK, format!("configYaml exports no telemetry: {}", callbacks(callback)))
            }
        };
        note::at(path, note)
    }));
    Ok(())
}

/// Returns a sentence that tells the user how to fix a configuration that exports no telemetry.
fn callbacks(callback: Option<&str>) -> String {
    let name = yaml_scalar(callback.unwrap_or_default());
    format!("add `callbacks: [{name}]` to litellm_settings of configYaml, or turn telemetry off")
}
