//! The native functions of the script's global `kaos` that merge pod specs, parse YAML, and quote texts of users.
//!
//! A function that can refuse an object returns `{refused}` or `{value}`. `prelude.js` throws the refusal.

use kaos_policy_sdk::{amend, env, patch, quote, types::Refusal, yaml};
use serde_json::{Value, json};

use crate::{
    bindings::types::EnvVar,
    from_script::record,
    plain::Wrong,
    sdk_types::{of_sdk, refused, to_sdk},
    to_script::text,
};

type Answer = std::result::Result<String, Wrong>;

/// Merges the partial pod spec of a user into the pod spec of the policy.
pub(crate) fn merge_pod_spec(value: &Value) -> Answer {
    let own = text_of(value, "own")?;
    let merged = patch::pod_spec(member(value, "base"), &member(value, "patch"), &own);
    let path = text_of(value, "path")?;
    Ok(answer(merged.map_err(|error| error.under(&path))))
}

/// Merges the partial container of a user into the container of the policy.
pub(crate) fn merge_container(value: &Value) -> Answer {
    let merged = patch::container(member(value, "base"), &member(value, "patch"));
    let path = text_of(value, "path")?;
    Ok(answer(merged.map_err(|error| error.under(&path))))
}

/// Checks the variables in the partial pod spec of a user.
pub(crate) fn check_pod_spec_env(value: &Value) -> Answer {
    let checked = env::check_patch(&member(value, "patch"), &text_of(value, "path")?);
    Ok(answer(checked.map(|()| Value::Null)))
}

/// Returns an `env` list with only the last definition of each variable.
pub(crate) fn env_once(value: &Value) -> Answer {
    let Value::Array(mut list) = value.clone() else { return Err(Wrong::new("is not a list of variables")) };
    env::each_once(&mut list);
    Ok(Value::Array(list).to_string())
}

/// Returns the mapping of variables in a merged pod spec.
pub(crate) fn pod_spec_env(value: &Value) -> Answer {
    let known: Vec<EnvVar> = record(value.get("env")).map_err(|wrong| wrong.below("env"))?;
    let known: Vec<_> = known.into_iter().map(to_sdk).collect();
    match env::of_pod_spec(&member(value, "podSpec"), &known, &text_of(value, "path")?) {
        Ok(vars) => {
            let vars: Vec<EnvVar> = vars.into_iter().map(of_sdk).collect();
            let vars = text(&vars).map_err(|error| Wrong::new(error.0))?;
            Ok(format!("{{\"value\":{vars}}}"))
        }
        Err(refusal) => Ok(answer(Err(refusal))),
    }
}

/// Parses YAML. If the text is not YAML, returns `{error}` with the message and the position.
pub(crate) fn parse_yaml(value: &Value) -> Answer {
    let source = text_of(value, "text")?;
    let only_texts = value.get("onlyTexts").and_then(Value::as_bool).unwrap_or_default();
    let parsed = if only_texts { yaml::parse_texts(&source) } else { yaml::parse(&source) };
    Ok(parsed.map_or_else(|error| json!({"error": error.to_string()}), |value| json!({"value": value})).to_string())
}

/// Returns the beginning of a user's text as one line, for a message.
pub(crate) fn shown(value: &Value) -> Answer {
    let most = value.get("most").and_then(Value::as_u64).and_then(|most| usize::try_from(most).ok());
    let most = most.ok_or_else(|| Wrong::new("is not a number of characters").below("most"))?;
    Ok(json!(quote::shown(&text_of(value, "text")?, most)).to_string())
}

/// Returns a text as one word of a shell.
pub(crate) fn shell_word(value: &Value) -> Answer {
    let source: String = record(Some(value))?;
    Ok(json!(quote::shell_word(&source)).to_string())
}

/// Replaces the registry of an image.
pub(crate) fn on_registry(value: &Value) -> Answer {
    Ok(json!(amend::on_registry(&text_of(value, "image")?, &text_of(value, "registry")?)).to_string())
}

/// Escapes a text so that Kubernetes expands no variable in it.
pub(crate) fn unexpanded(value: &Value) -> Answer {
    let source: String = record(Some(value))?;
    Ok(json!(quote::unexpanded(&source)).to_string())
}

fn member(value: &Value, name: &str) -> Value {
    value.get(name).cloned().unwrap_or_default()
}

fn text_of(value: &Value, name: &str) -> std::result::Result<String, Wrong> {
    record(value.get(name)).map_err(|wrong| wrong.below(name))
}

fn answer(answer: Result<Value, Refusal>) -> String {
    match answer {
        Ok(value) => json!({"value": value}).to_string(),
        Err(refusal) => json!({"refused": refused(&refusal)}).to_string(),
    }
}
