//! Checks a LiteLLM configuration from the user. Returns an error, or a list of the parts that are valid but probably
//! mistakes. The policy adds a note on each of them.
//!
//! The proxy gets the user's text unchanged.

use alloc::{
    borrow::ToOwned,
    string::{String, ToString},
    vec::Vec,
};
use kaos_policy_sdk::{quote::shown, yaml};
use kaos_workload::models;
use serde_json::Value;
use thiserror::Error;

/// The reasons to refuse a configuration. Except for `TooMany`, each message begins like KAOS's message.
#[derive(Debug, Error, PartialEq)]
pub(crate) enum ConfigYamlError {
    #[error("failed to parse configYaml: {0}")]
    Syntax(String),
    #[error("failed to parse configYaml: {path} must be {wanted}")]
    Shape { path: String, wanted: &'static str },
    #[error("model_name \"{name}\" in configYaml not found in models list [{list}]", name = shown(model, 100), list = shown(&patterns.join(" "), 1000))]
    NotAllowed { model: String, patterns: Vec<String> },
    #[error(
        "{entries} entries of model_list in configYaml are too many to compare with {patterns} models: name fewer models, for example with the pattern provider/* or *"
    )]
    TooMany { entries: usize, patterns: usize },
}

/// The maximum number of times that the check compares a name with a pattern. Two lists with thousands of entries could
/// otherwise exceed the fuel limit of a pass.
const COMPARISONS: usize = 1_000_000;

/// A part of a configuration that is valid, but probably a mistake.
#[derive(Debug, PartialEq)]
pub(crate) enum Oddity {
    /// The proxy would serve no model.
    NoModels,
    /// The entry of `model_list` at this index has no `model_name`.
    Nameless(usize),
    /// Telemetry is enabled, but the configuration has no callback that exports telemetry.
    NoCallback,
}

/// Checks that the text is YAML and names only models that `patterns` allow. `callback` is the name of the callback
/// that exports telemetry, or `None` if telemetry is disabled.
pub(crate) fn check(text: &str, patterns: &[String], callback: Option<&str>) -> Result<Vec<Oddity>, ConfigYamlError> {
    let document = yaml::parse(text).map_err(|error| ConfigYamlError::Syntax(error.to_string()))?;
    let fields = match &document {
        Value::Null => None,
        Value::Object(fields) => Some(fields),
        _ => return Err(shape("the document", "a mapping")),
    };
    let mut oddities = Vec::new();
    if callback.is_some_and(|callback| !calls(&document, callback)) {
        oddities.push(Oddity::NoCallback);
    }
    let entries = match fields.and_then(|fields| fields.get("model_list")) {
        None | Some(Value::Null) => &[][..],
        Some(Value::Array(entries)) => entries,
        Some(_) => return Err(shape("model_list", "a list")),
    };
    if entries.is_empty() {
        oddities.push(Oddity::NoModels);
    }
    if entries.len().saturating_mul(patterns.len()) > COMPARISONS {
        return Err(ConfigYamlError::TooMany { entries: entries.len(), patterns: patterns.len() });
    }
    for (index, entry) in entries.iter().enumerate() {
        let Value::Object(entry) = entry else {
            return Err(shape(&format!("model_list[{index}]"), "a mapping"));
        };
        match entry.get("model_name") {
            None | Some(Value::Null) => oddities.push(Oddity::Nameless(index)),
            Some(Value::Array(_) | Value::Object(_)) => {
                return Err(shape(&format!("model_list[{index}].model_name"), "a string"));
            }
            Some(name) => {
                let model = name.as_str().map_or_else(|| name.to_string(), str::to_owned);
                if !models::allowed(patterns, &model) {
                    return Err(ConfigYamlError::NotAllowed { model, patterns: patterns.to_vec() });
                }
            }
        }
    }
    Ok(oddities)
}

/// Returns whether a list of callbacks in the configuration contains `callback`.
fn calls(document: &Value, callback: &str) -> bool {
    let settings = document.get("litellm_settings");
    ["callbacks", "success_callback", "failure_callback"].into_iter().any(|field| {
        match settings.and_then(|settings| settings.get(field)) {
            Some(Value::Array(names)) => names.iter().any(|name| name.as_str() == Some(callback)),
            Some(name) => name.as_str() == Some(callback),
            None => false,
        }
    })
}

fn shape(path: &str, wanted: &'static str) -> ConfigYamlError {
    ConfigYamlError::Shape { path: path.to_owned(), wanted }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(text: &str, patterns: &[&str]) -> Result<Vec<Oddity>, String> {
        let patterns: Vec<String> = patterns.iter().map(|&p| p.to_owned()).collect();
        check(text, &patterns, None).map_err(|error| error.to_string())
    }

    #[test]
    fn every_model_name_must_be_allowed_by_models() {
        let text = "model_list:\n- model_name: gpt-4o\n- model_name: \"openai/o3\"\n- {model_name: gemini/pro}\n";
        assert_eq!(checked(text, &["*"]), Ok(vec![]));
        assert_eq!(
            checked(text, &["gpt-4o", "openai/*"]),
            Err("model_name \"gemini/pro\" in configYaml not found in models list [gpt-4o openai/*]".to_owned())
        );
    }

    #[test]
    fn text_that_is_not_yaml_is_refused_with_the_known_prefix() {
        let message = checked("model_list: [\n  - oops: {", &["*"]).unwrap_err();
        assert!(message.starts_with("failed to parse configYaml: "), "{message}");
    }

    #[test]
    fn a_document_of_another_shape_is_refused_by_name() {
        for (text, path) in [
            ("- a", "the document"),
            ("model_list: {a: 1}", "model_list"),
            ("model_list: [a]", "model_list[0]"),
            ("model_list: [{model_name: a}, {model_name: [b]}]", "model_list[1].model_name"),
        ] {
            let message = checked(text, &["*"]).unwrap_err();
            assert!(message.starts_with(&format!("failed to parse configYaml: {path} must be ")), "{message}");
        }
    }

    #[test]
    fn thousands_of_names_are_not_compared_with_thousands_of_patterns() {
        let text = "model_list:\n".to_owned() + &"- {model_name: a}\n".repeat(2_000);
        assert_eq!(checked(&text, &["b", "a"]), Ok(vec![]));
        let message = checked(&text, &vec!["a"; 501]).unwrap_err();
        assert!(message.starts_with("2000 entries of model_list in configYaml are too many"), "{message}");
    }

    #[test]
    fn a_configuration_without_models_is_accepted_with_a_note() {
        for text in ["", "litellm_settings: {drop_params: true}", "model_list: []", "model_list:"] {
            assert_eq!(checked(text, &["a"]), Ok(vec![Oddity::NoModels]), "{text}");
        }
        assert_eq!(checked("model_list: [{litellm_params: {}}]", &["a"]), Ok(vec![Oddity::Nameless(0)]));
    }

    #[test]
    fn a_configuration_without_callback_gets_a_note_if_telemetry_is_on() {
        let models = "model_list: [{model_name: a}]\n";
        for settings in
            ["", "litellm_settings: {}", "litellm_settings: {success_callback: [langfuse]}", "callbacks: otel"]
        {
            let text = format!("{models}{settings}");
            assert_eq!(check(&text, &["a".to_owned()], Some("otel")), Ok(vec![Oddity::NoCallback]), "{settings}");
        }
        for settings in ["callbacks: otel", "success_callback: [s3, otel]", "failure_callback: [\"otel\"]"] {
            let text = format!("{models}litellm_settings: {{{settings}}}");
            assert_eq!(check(&text, &["a".to_owned()], Some("otel")), Ok(vec![]), "{settings}");
        }
        assert_eq!(check("", &["a".to_owned()], Some("otel")), Ok(vec![Oddity::NoCallback, Oddity::NoModels]));
    }

    #[test]
    fn a_name_that_yaml_reads_as_a_number_is_compared_as_text() {
        assert_eq!(checked("model_list: [{model_name: 4}]", &["4"]), Ok(vec![]));
    }
}
