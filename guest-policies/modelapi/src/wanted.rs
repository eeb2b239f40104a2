//! Reads a `ModelAPI` in its current form and in all deprecated forms.
//!
//! Deprecated fields still work, and the policy adds a note that names the current field. [`crate::proxy`] and
//! [`crate::hosted`] build the pod from the result.

use alloc::{borrow::ToOwned, string::String, vec::Vec};
use kaos_crds::modelapi::{ApiKey, ConfigSource, ConfigYaml, Mode, ProxyConfig};
use kaos_crds::{KeySelector, ModelAPISpec};
use kaos_policy_sdk::types::{Note, Refusal};
use kaos_policy_sdk::{Path, note, refusal};
use kaos_workload::notes::{self, DEPRECATED, deprecated, ignored};

use crate::providers::{Config, Key, Proxy};
use crate::{model_names, older};

/// The deprecated field for a single model. `models` replaced it.
const OLDER_MODEL: &str = "spec.proxyConfig.model";
/// The field for the model of mode Hosted.
const HOSTED_MODEL: &str = "spec.hostedConfig.model";

/// The server to run.
#[derive(Debug, PartialEq)]
pub(crate) enum Wanted {
    Proxy(Proxy),
    Hosted { model: String, path: &'static str },
}

impl Wanted {
    /// Reads the spec.
    pub(crate) fn of(spec: &ModelAPISpec, notes: &mut Vec<Note>) -> Result<Self, Refusal> {
        older::containers(spec, notes);
        unused(spec, notes)?;
        match spec.mode {
            Mode::Proxy => match &spec.proxy_config {
                Some(config) => proxy(config, notes).map(Self::Proxy),
                None => Err(refusal::invalid(
                    "spec.proxyConfig",
                    "mode Proxy requires proxyConfig: set proxyConfig.models; [\"*\"] allows all models",
                )),
            },
            Mode::Hosted => hosted(spec, notes),
        }
    }
}

/// Adds a note on each block that has no effect in the object's mode. In mode Proxy, refuses a `hostedConfig` if
/// neither `hostedConfig` nor `serverConfig` has the field `model`, as the CRD does. The field can be empty.
fn unused(spec: &ModelAPISpec, notes: &mut Vec<Note>) -> Result<(), Refusal> {
    let has_model = spec.hosted_config.as_ref().is_none_or(|config| config.model.is_some())
        || spec.server_config.as_ref().is_some_and(|config| config.model.is_some());
    if spec.mode == Mode::Proxy && !has_model {
        let message = "hostedConfig.model is required, also in mode Proxy, which ignores hostedConfig: remove \
                       hostedConfig";
        return Err(refusal::invalid(HOSTED_MODEL, message));
    }
    let (mode, other, blocks) = match spec.mode {
        Mode::Proxy => (
            "Proxy",
            "Hosted",
            [("spec.hostedConfig", spec.hosted_config.is_some()), ("spec.serverConfig", spec.server_config.is_some())],
        ),
        Mode::Hosted => ("Hosted", "Proxy", [("spec.proxyConfig", spec.proxy_config.is_some()), ("", false)]),
    };
    for (path, _) in blocks.into_iter().filter(|(_, is_there)| *is_there) {
        let message = format!("{path} has no effect in mode {mode}: remove {path}, or choose mode {other}");
        notes.push(note::at(path, note::warning("Unused", message)));
    }
    Ok(())
}

fn hosted(spec: &ModelAPISpec, notes: &mut Vec<Note>) -> Result<Wanted, Refusal> {
    const OLDER: &str = "spec.serverConfig.model";
    let older_model = spec.server_config.as_ref().and_then(|config| text(config.model.as_ref()));
    let model = spec.hosted_config.as_ref().and_then(|config| text(config.model.as_ref()));
    if older_model.is_some() {
        notes.push(notes::older(OLDER, HOSTED_MODEL, model.is_some()));
    }
    if let Some(model) = model {
        return Ok(Wanted::Hosted { model: model.to_owned(), path: HOSTED_MODEL });
    }
    if let Some(model) = older_model {
        let path = OLDER;
        return Ok(Wanted::Hosted { model: model.to_owned(), path });
    }
    let path = if spec.hosted_config.is_some() { HOSTED_MODEL } else { "spec.hostedConfig" };
    let message = "mode Hosted requires hostedConfig: set hostedConfig.model, for example to smollm2:135m";
    Err(refusal::invalid(path, message))
}

fn proxy(config: &ProxyConfig, notes: &mut Vec<Note>) -> Result<Proxy, Refusal> {
    let proxy = Proxy {
        models: models(config, notes)?,
        provider: text(config.provider.as_ref()).map(str::to_owned),
        api_base: text(config.api_base.as_ref()).map(str::to_owned),
        api_key: config.api_key.as_ref().map(|key| api_key(key, notes)).transpose()?.flatten(),
        config: config_file(config.config_yaml.as_ref(), notes)?,
    };
    let path_of = |at: usize| match &config.models {
        Some(_) => Path::new("spec.proxyConfig.models").index(at).into(),
        None => OLDER_MODEL.to_owned(),
    };
    model_names::check(&proxy, path_of, notes)?;
    Ok(proxy)
}

fn models(config: &ProxyConfig, notes: &mut Vec<Note>) -> Result<Vec<String>, Refusal> {
    let older = text(config.model.as_ref());
    if older.is_some() {
        notes.push(match &config.models {
            Some(_) => ignored(OLDER_MODEL, "spec.proxyConfig.models"),
            None => deprecated(OLDER_MODEL, Some("spec.proxyConfig.models, which takes a list")),
        });
    }
    match (&config.models, older) {
        (Some(models), _) if models.is_empty() => {
            let message = "models must name at least one model: [\"*\"] allows all models";
            Err(refusal::invalid("spec.proxyConfig.models", message))
        }
        (Some(models), _) => Ok(models.clone()),
        (None, Some(model)) => Ok(vec![model.to_owned()]),
        (None, None) => {
            let path = "spec.proxyConfig.models";
            let message = format!(
                "{path} is not set, so all models are offered: list models there, or write [\"*\"] for all models"
            );
            notes.push(note::at(path, note::warning(DEPRECATED, message)));
            Ok(vec!["*".to_owned()])
        }
    }
}

/// Returns the source of the API key, or `None` if the ModelAPI has no API key. A value wins over a Secret, and a
/// Secret wins over a ConfigMap. The policy treats an empty `apiKey` as absent.
fn api_key(key: &ApiKey, notes: &mut Vec<Note>) -> Result<Option<Key>, Refusal> {
    let from = key.value_from.as_ref();
    if let Some(value) = text(key.value.as_ref()) {
        let message = "every user who may read this object or its Deployment can read the key: store it in a Secret, \
                       and name the Secret in apiKey.valueFrom.secretKeyRef";
        notes.push(note::at("spec.proxyConfig.apiKey.value", note::info("ApiKeyInSpec", message)));
        return Ok(Some(Key::Literal(value.to_owned())));
    }
    if let Some(selector) = from.and_then(|from| from.secret_key_ref.as_ref()) {
        if from.is_some_and(|from| from.config_map_key_ref.is_some()) {
            let message = "has no effect, because valueFrom.secretKeyRef is also set: remove one of the two";
            let path = "spec.proxyConfig.apiKey.valueFrom.configMapKeyRef";
            notes.push(note::at(path, note::warning("Unused", message)));
        }
        complete(selector, "spec.proxyConfig.apiKey.valueFrom.secretKeyRef", "Secret")?;
        return Ok(Some(Key::Secret(selector.clone())));
    }
    if let Some(selector) = from.and_then(|from| from.config_map_key_ref.as_ref()) {
        complete(selector, "spec.proxyConfig.apiKey.valueFrom.configMapKeyRef", "ConfigMap")?;
        return Ok(Some(Key::ConfigMap(selector.clone())));
    }
    let message = "apiKey has neither value nor valueFrom, so the policy ignores it: set one of them, or remove apiKey";
    notes.push(note::at("spec.proxyConfig.apiKey", note::warning("ApiKeyEmpty", message)));
    Ok(None)
}

fn config_file(config: Option<&ConfigYaml>, notes: &mut Vec<Note>) -> Result<Config, Refusal> {
    const PATH: &str = "spec.proxyConfig.configYaml";
    const FROM_STRING: &str = "spec.proxyConfig.configYaml.fromString";
    const FROM_SECRET: &str = "spec.proxyConfig.configYaml.fromSecretKeyRef";
    let source = match config {
        None => return Ok(Config::Generated),
        Some(ConfigYaml::Text(text)) if text.is_empty() => return Ok(Config::Generated),
        Some(ConfigYaml::Text(text)) => {
            notes.push(note::at(PATH, deprecated("spec.proxyConfig.configYaml as a text", Some(FROM_STRING))));
            return Ok(Config::Text { text: text.clone(), path: PATH });
        }
        Some(ConfigYaml::From(source)) => source,
    };
    let unknown = source.unknown.as_ref().map(|name| Path::new(PATH).key(name));
    let chosen = match (text(source.from_string.as_ref()), &source.from_secret_key_ref) {
        (Some(text), secret) => {
            if secret.is_some() {
                let message = "has no effect, because configYaml.fromString is also set: remove one of the two";
                notes.push(note::at(FROM_SECRET, note::warning("ConfigSecretUnused", message)));
            }
            Config::Text { text: text.to_owned(), path: FROM_STRING }
        }
        (None, Some(selector)) => {
            complete(selector, FROM_SECRET, "Secret")?;
            Config::Secret(selector.clone())
        }
        (None, None) => {
            // If `configYaml` has an unknown field, do not generate a configuration. A generated configuration would
            // offer all `models`, perhaps more than the user intended.
            return match unknown {
                None => Ok(Config::Generated),
                Some(path) => {
                    let known = ConfigSource::FIELDS.join(" or ");
                    Err(refusal::invalid(path, format!("is not a field of configYaml: did you mean {known}?")))
                }
            };
        }
    };
    if let Some(path) = unknown {
        let message = format!("{path} is not a field of configYaml, so the policy ignores it: remove the field");
        notes.push(note::at(path, note::warning("UnknownField", message)));
    }
    Ok(chosen)
}

fn complete(selector: &KeySelector, path: &str, kind: &str) -> Result<(), Refusal> {
    for (value, field) in [(&selector.name, "name"), (&selector.key, "key")] {
        if value.is_empty() {
            return Err(refusal::invalid(
                format!("{path}.{field}"),
                format!("{field} is required: name the {kind} and its key"),
            ));
        }
    }
    Ok(())
}

fn text(value: Option<&String>) -> Option<&str> {
    value.map(String::as_str).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn wanted(spec: Value) -> Result<(Wanted, Vec<Note>), Refusal> {
        let mut notes = Vec::new();
        Wanted::of(&serde_json::from_value(spec).unwrap(), &mut notes).map(|wanted| (wanted, notes))
    }

    fn proxy_of(config: &Value) -> (Proxy, Vec<(String, String)>) {
        let (Wanted::Proxy(proxy), notes) = wanted(json!({"mode": "Proxy", "proxyConfig": config})).unwrap() else {
            panic!("not a proxy")
        };
        (proxy, notes.into_iter().map(|note| (note.reason, note.path.unwrap_or_default())).collect())
    }

    fn refused_path(spec: Value) -> String {
        match wanted(spec) {
            Err(Refusal::Invalid(violations)) => violations[0].path.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_mode_without_its_block_is_refused_with_the_path() {
        assert_eq!(refused_path(json!({"mode": "Proxy"})), "spec.proxyConfig");
        assert_eq!(refused_path(json!({"mode": "Proxy", "proxyConfig": {"models": []}})), "spec.proxyConfig.models");
        assert_eq!(refused_path(json!({"mode": "Hosted"})), "spec.hostedConfig");
        assert_eq!(refused_path(json!({"mode": "Hosted", "hostedConfig": {}})), "spec.hostedConfig.model");
        assert_eq!(refused_path(json!({"mode": "Hosted", "hostedConfig": {"model": ""}})), "spec.hostedConfig.model");
    }

    #[test]
    fn an_unused_block_without_its_model_is_refused_where_the_definition_refuses_it() {
        let of = |mode: &str, hosted: Value, server: Value| {
            let config = json!({"models": ["a"]});
            json!({"mode": mode, "proxyConfig": config, "hostedConfig": hosted, "serverConfig": server})
        };
        let env = json!({"env": [{"name": "A", "value": "1"}]});
        for hosted in [json!({}), env, json!({"model": null})] {
            for server in [Value::Null, json!({})] {
                assert_eq!(refused_path(of("Proxy", hosted.clone(), server)), "spec.hostedConfig.model");
            }
        }
        // The CRD accepts an empty `model` in `hostedConfig` and in `serverConfig`, and accepts any `proxyConfig`.
        let taken = |spec: Value| wanted(spec).is_ok();
        assert!(taken(of("Proxy", json!({"model": ""}), Value::Null)));
        assert!(taken(of("Proxy", json!({}), json!({"model": ""}))));
        assert!(taken(json!({"mode": "Hosted", "hostedConfig": {"model": "m"}, "proxyConfig": {}})));
    }

    #[test]
    fn a_reference_without_a_name_is_refused_with_the_path() {
        for (config, path) in [
            (
                json!({"models": ["a"], "apiKey": {"valueFrom": {"secretKeyRef": {"key": "k"}}}}),
                "spec.proxyConfig.apiKey.valueFrom.secretKeyRef.name",
            ),
            (
                json!({"models": ["a"], "apiKey": {"valueFrom": {"configMapKeyRef": {"name": "n", "key": ""}}}}),
                "spec.proxyConfig.apiKey.valueFrom.configMapKeyRef.key",
            ),
            (
                json!({"models": ["a"], "configYaml": {"fromSecretKeyRef": {"key": "k"}}}),
                "spec.proxyConfig.configYaml.fromSecretKeyRef.name",
            ),
        ] {
            assert_eq!(refused_path(json!({"mode": "Proxy", "proxyConfig": config})), path);
        }
    }

    #[test]
    fn the_value_of_a_key_wins_and_a_note_recommends_a_secret() {
        let from = json!({"secretKeyRef": {"name": "n", "key": "k"}, "configMapKeyRef": {"name": "m", "key": "k"}});
        let (proxy, notes) = proxy_of(&json!({"models": ["a"], "apiKey": {"value": "v", "valueFrom": from}}));
        assert_eq!(proxy.api_key, Some(Key::Literal("v".to_owned())));
        assert_eq!(notes, [("ApiKeyInSpec".to_owned(), "spec.proxyConfig.apiKey.value".to_owned())]);
        let (proxy, notes) = proxy_of(&json!({"models": ["a"], "apiKey": {"valueFrom": from}}));
        assert!(matches!(proxy.api_key, Some(Key::Secret(_))));
        let unused = "spec.proxyConfig.apiKey.valueFrom.configMapKeyRef";
        assert_eq!(notes, [("Unused".to_owned(), unused.to_owned())]);
    }

    #[test]
    fn the_block_of_the_other_mode_gets_a_note() {
        // If the whole block has no effect, its deprecated fields need no further notes.
        let env = json!([{"name": "A", "value": "1"}]);
        let both = json!({"proxyConfig": {"models": ["a"]}, "hostedConfig": {"model": "m"}});
        for (mode, path) in [("Proxy", "spec.hostedConfig"), ("Hosted", "spec.proxyConfig")] {
            let mut spec = both.clone();
            spec["mode"] = json!(mode);
            let other = if mode == "Proxy" { "hostedConfig" } else { "proxyConfig" };
            spec[other]["env"] = env.clone();
            let (_, notes) = wanted(spec).unwrap();
            let told: Vec<_> = notes.iter().map(|note| (note.reason.as_str(), note.path.as_deref())).collect();
            assert_eq!(told, [("Unused", Some(path))]);
        }
    }

    #[test]
    fn an_empty_key_counts_as_absent() {
        let (proxy, notes) = proxy_of(&json!({"models": ["a"], "apiKey": {}}));
        assert_eq!(proxy.api_key, None);
        assert_eq!(notes[0].0, "ApiKeyEmpty");
    }

    #[test]
    fn older_ways_to_name_models_are_understood() {
        let (proxy, notes) = proxy_of(&json!({"model": "gpt-4o"}));
        assert_eq!(proxy.models, ["gpt-4o"]);
        assert_eq!(notes, [("Deprecated".to_owned(), "spec.proxyConfig.model".to_owned())]);
        let (proxy, notes) = proxy_of(&json!({}));
        assert_eq!(proxy.models, ["*"]);
        assert_eq!(notes, [("Deprecated".to_owned(), "spec.proxyConfig.models".to_owned())]);
        let (proxy, _) = proxy_of(&json!({"models": ["new"], "model": "old"}));
        assert_eq!(proxy.models, ["new"]);
    }

    #[test]
    fn older_forms_of_a_configuration_and_of_a_hosted_model_are_understood() {
        let (proxy, notes) = proxy_of(&json!({"models": ["*"], "configYaml": "model_list: []"}));
        assert_eq!(
            proxy.config,
            Config::Text { text: "model_list: []".to_owned(), path: "spec.proxyConfig.configYaml" }
        );
        assert_eq!(notes[0].0, "Deprecated");
        let spec = json!({"mode": "Hosted", "serverConfig": {"model": "m", "env": [{"name": "A"}], "resources": {}}});
        let (hosted, notes) = wanted(spec).unwrap();
        assert_eq!(hosted, Wanted::Hosted { model: "m".to_owned(), path: "spec.serverConfig.model" });
        let paths: Vec<_> = notes.iter().filter_map(|note| note.path.as_deref()).collect();
        assert_eq!(paths, ["spec.serverConfig.env", "spec.serverConfig.resources", "spec.serverConfig.model"]);
    }

    #[test]
    fn a_configuration_as_text_wins_over_one_from_a_secret() {
        let secret = json!({"name": "n", "key": "k"});
        let (proxy, notes) =
            proxy_of(&json!({"models": ["*"], "configYaml": {"fromString": "a: 1", "fromSecretKeyRef": secret}}));
        assert!(matches!(proxy.config, Config::Text { .. }));
        assert_eq!(notes[0].0, "ConfigSecretUnused");
        assert_eq!(proxy_of(&json!({"models": ["*"], "configYaml": {}})).0.config, Config::Generated);
        assert!(matches!(
            proxy_of(&json!({"models": ["*"], "configYaml": {"fromSecretKeyRef": secret}})).0.config,
            Config::Secret(_)
        ));
    }

    #[test]
    fn a_configuration_with_unknown_fields_alone_is_refused_with_the_path() {
        let secret = json!({"name": "n", "key": "k"});
        for source in [json!({"fromSecretKeyref": secret}), json!({"fromString": "", "fromSecretKeyref": secret})] {
            let spec = json!({"mode": "Proxy", "proxyConfig": {"models": ["*"], "configYaml": source}});
            assert_eq!(refused_path(spec), "spec.proxyConfig.configYaml.fromSecretKeyref");
        }
        assert_eq!(
            proxy_of(&json!({"models": ["*"], "configYaml": {"fromSecretKeyref": null}})).0.config,
            Config::Generated
        );
    }

    #[test]
    fn an_unknown_field_next_to_a_known_one_gets_a_note() {
        let secret = json!({"name": "n", "key": "k"});
        for source in [json!({"fromString": "a: 1", "x": 1}), json!({"fromSecretKeyRef": secret, "x": 1})] {
            let (proxy, notes) = proxy_of(&json!({"models": ["*"], "configYaml": source}));
            assert_ne!(proxy.config, Config::Generated);
            assert_eq!(notes, [("UnknownField".to_owned(), "spec.proxyConfig.configYaml.x".to_owned())]);
        }
    }
}
