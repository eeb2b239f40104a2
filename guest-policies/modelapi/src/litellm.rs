//! Generates the configuration file of the proxy.
//!
//! [`yaml_scalar`] quotes every value, so that the name of a model or provider cannot add further YAML.
//! [`crate::config_yaml`] checks configuration files that users write.

use alloc::{borrow::ToOwned, string::String};
use core::fmt::Write as _;

use kaos_policy_sdk::quote::yaml_scalar;

use crate::settings::ProxyConfigFile;

/// The values that the proxy's configuration file contains.
pub(crate) struct ProxyModels<'a> {
    pub(crate) models: &'a [String],
    pub(crate) provider: Option<&'a str>,
    pub(crate) has_api_base: bool,
    pub(crate) has_api_key: bool,
    pub(crate) telemetry: bool,
}

impl ProxyModels<'_> {
    /// Renders the text of `config.yaml`.
    pub(crate) fn render(&self, settings: &ProxyConfigFile) -> String {
        let mut text = String::from("# Auto-generated LiteLLM config\nmodel_list:\n");
        for model in self.models {
            self.model(&mut text, model);
        }
        text.push_str("\nlitellm_settings:\n");
        line(&mut text, "  drop_params: ", if settings.drop_params { "true" } else { "false" });
        if self.telemetry {
            let callback = format!("[{}]", yaml_scalar(&settings.telemetry_callback));
            line(&mut text, "  success_callback: ", &callback);
            line(&mut text, "  failure_callback: ", &callback);
        }
        text
    }

    fn model(&self, text: &mut String, model: &str) {
        line(text, "  - model_name: ", &yaml_scalar(model));
        line(text, "    litellm_params:", "");
        line(text, "      model: ", &yaml_scalar(&self.upstream_name(model)));
        if self.has_api_base {
            line(text, "      api_base: ", "\"os.environ/PROXY_API_BASE\"");
        }
        if self.has_api_key {
            line(text, "      api_key: ", "\"os.environ/PROXY_API_KEY\"");
        }
    }

    /// Puts the provider in front of the model, unless the model already begins with the provider.
    fn upstream_name(&self, model: &str) -> String {
        match self.provider {
            Some(provider) if !model.strip_prefix(provider).is_some_and(|rest| rest.starts_with('/')) => {
                format!("{provider}/{model}")
            }
            _ => model.to_owned(),
        }
    }
}

fn line(text: &mut String, key: &str, value: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{key}{value}");
}

#[cfg(test)]
mod tests {
    use kaos_policy_sdk::yaml;
    use proptest::prelude::*;

    use super::*;
    use crate::settings::Settings;

    fn rendered(models: &[String], provider: Option<&str>, telemetry: bool) -> String {
        let models = ProxyModels { models, provider, has_api_base: true, has_api_key: true, telemetry };
        models.render(&Settings::default().proxy_config)
    }

    #[test]
    fn a_provider_goes_before_every_model_that_does_not_begin_with_it() {
        let models = ["gpt-4o", "openai/o3", "openai-x", "*"].map(str::to_owned);
        let text = rendered(&models, Some("openai"), false);
        for upstream in ["openai/gpt-4o", "openai/o3", "openai/openai-x", "openai/*"] {
            assert!(text.contains(&format!("      model: \"{upstream}\"\n")), "{text}");
        }
    }

    #[test]
    fn callbacks_are_configured_only_with_telemetry() {
        assert!(rendered(&["a".to_owned()], None, true).ends_with("  failure_callback: [\"otel\"]\n"));
        assert!(rendered(&["a".to_owned()], None, false).ends_with("  drop_params: true\n"));
    }

    proptest! {
        #[test]
        fn a_yaml_parser_reads_the_written_names_back(
            models in prop::collection::vec("[\\PC\n\r\t\"'\\\\:#{}\\[\\]&*!|>%@`]{0,20}", 1..4),
            provider in prop::option::of("[\\PC\n\"'\\\\]{1,10}"),
        ) {
            let document = yaml::parse(&rendered(&models, provider.as_deref(), true)).unwrap();
            let entries = document["model_list"].as_array().unwrap();
            prop_assert_eq!(entries.len(), models.len());
            for (entry, model) in entries.iter().zip(&models) {
                prop_assert_eq!(entry["model_name"].as_str(), Some(model.as_str()));
                let upstream = entry["litellm_params"]["model"].as_str().unwrap();
                prop_assert!(upstream.ends_with(model.as_str()));
            }
            prop_assert_eq!(document.as_object().unwrap().len(), 2);
        }
    }
}
