//! Finds proxies that will not start with LiteLLM 1.104, because they have neither a master key nor the permission to
//! run without a master key. The setting `proxyConfig.withoutMasterKey` of the policy `modelapi` gives the permission.

use std::sync::Arc;

use kaos_crds::API_VERSION;
use kaos_policy::{
    render::Verdict,
    stamp::{pod_template, references, referred_config_maps},
};
use serde_json::Value;

use super::{
    litellm_version::{FIRST, Version, version},
    report::{Sort, UpgradeFinding},
    table,
};
use crate::{input::Document, offline::Entry};

/// The container of a ModelAPI.
const CONTAINER: &str = "model-api";
/// The variable that permits LiteLLM to run without a master key.
pub(super) const PERMISSION: &str = "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY";
/// The variable with the master key.
const KEY: &str = "LITELLM_MASTER_KEY";
/// In LiteLLM's configuration, a text with this beginning names a variable.
const OF_VARIABLE: &str = "os.environ/";
const REMEDY: &str = "when a restart is possible, set policies.proxies={policy: modelapi, settings: {proxyConfig: \
                      {withoutMasterKey: true, withoutMasterKeySince: \"\"}}}; or choose an image of an older version, \
                      or give the proxy a master key";

/// Returns the finding about one object. `is_kept` tells whether the upgrade keeps the pods of the object.
pub(super) fn finding(object: &Document, entry: &Arc<Entry>, is_kept: bool) -> Option<UpgradeFinding> {
    let Verdict::Planned(planned) = &entry.rendered.verdict else { return None };
    if object.object["apiVersion"] != API_VERSION
        || object.object["kind"] != "ModelAPI"
        || object.object["spec"]["mode"] == "Hosted"
    {
        return None;
    }
    let spec = &planned.manifests.iter().find_map(pod_template)?["spec"];
    let container = server_of(spec)?;
    let image = container["image"].as_str()?;
    let version = version(image);
    let configs = referred_config_maps(spec, &planned.manifests);
    let mut texts = configs.iter().filter_map(|config| config["data"].as_object()).flat_map(|data| data.values());
    if !is_keyless(container) || texts.any(|text| text.as_str().is_some_and(|text| has_key(text, container))) {
        return None;
    }
    let message = match (version, is_kept) {
        (Version::Earlier, _) | (Version::Fixed, true) => return None,
        (Version::Later, true) => {
            format!(
                "its image {image} is such a version: the pods that run now stay, but a pod that starts ends at once"
            )
        }
        (Version::Later, false) => format!("its image {image} is such a version, so its pods end at once"),
        (Version::Moving, true) => format!(
            "its image {image} can become such a version: the pods that run now stay, but a pod that starts on a node \
             with a newer image ends at once"
        ),
        (Version::Moving | Version::Fixed, false) => {
            format!("its image {image} can be such a version: the new pods then end at once")
        }
    };
    // The check reads no Secrets, so it may miss a master key.
    let is_hidden = !container["envFrom"].is_null() || references(&spec["volumes"]).iter().any(|it| it.0 == "Secret");
    let (unless, sort) = if is_kept {
        ("", Sort::Note)
    } else if is_hidden {
        (", unless a Secret or a ConfigMap of yours has the master key", Sort::Open)
    } else {
        ("", Sort::Breaks)
    };
    let message = format!(
        "the proxy has no master key, and LiteLLM {}.{} and later do not start without one; {message}{unless}",
        FIRST.0, FIRST.1
    );
    Some(UpgradeFinding::new(sort, object.identity.to_string(), message, REMEDY))
}

/// Returns the container of a Deployment that runs the proxy.
pub(super) fn server(deployment: &Value) -> Option<&Value> {
    server_of(&deployment["spec"]["template"]["spec"])
}

fn server_of(spec: &Value) -> Option<&Value> {
    spec["containers"].as_array()?.iter().find(|container| container["name"] == CONTAINER)
}

/// Returns whether the container of a proxy has neither a variable with a master key nor the permission to run without
/// a master key.
pub(super) fn is_keyless(container: &Value) -> bool {
    !is_permitted(container) && !has_text(container, KEY)
}

/// Returns the variable of a container with this name. If the container has several such variables, returns the last
/// one.
fn variable<'a>(container: &'a Value, name: &str) -> Option<&'a Value> {
    container["env"].as_array()?.iter().rfind(|variable| variable["name"] == *name)
}

/// Returns whether the variable with this name has a text that is not empty. Assumes that a text from another object is
/// not empty, because the check does not read the other object.
fn has_text(container: &Value, name: &str) -> bool {
    variable(container, name).is_some_and(|variable| {
        !variable["valueFrom"].is_null() || variable["value"].as_str().is_some_and(|text| !text.is_empty())
    })
}

/// Returns whether the proxy has the permission to run without a master key.
pub(super) fn is_permitted(container: &Value) -> bool {
    variable(container, PERMISSION).is_some_and(|variable| {
        !variable["valueFrom"].is_null() || variable["value"].as_str().is_some_and(table::is_on)
    })
}

/// Returns whether a configuration of LiteLLM sets the master key, either as a text or through a variable of the
/// container or of the configuration.
fn has_key(config: &str, container: &Value) -> bool {
    let Ok(config) = serde_saphyr::from_str::<Value>(config) else { return false };
    let variables = &config["environment_variables"];
    let is_set =
        |name: &str| has_text(container, name) || variables[name].as_str().is_some_and(|text| !text.is_empty());
    match config["general_settings"]["master_key"].as_str() {
        None => is_set(KEY),
        Some(text) => text.strip_prefix(OF_VARIABLE).map_or(!text.is_empty(), is_set),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_configuration_has_a_key_as_a_text_or_through_a_variable_with_a_text() {
        let of = |variables: Value| json!({"name": CONTAINER, "env": variables});
        let with = |value: &str| of(json!([{"name": KEY, "value": value}]));
        for (config, container, is) in [
            ("general_settings: {master_key: sk-1}", of(json!([])), true),
            ("{x: 'a # b', general_settings: {master_key: sk-1}}", of(json!([])), true),
            ("a: 1 # master_key", of(json!([])), false),
            ("general_settings: {master_key: ''}", of(json!([])), false),
            ("model_list: [{master_key: sk-1}]", of(json!([])), false),
            ("general_settings: {master_key: os.environ/LITELLM_MASTER_KEY}", of(json!([])), false),
            ("general_settings: {master_key: os.environ/LITELLM_MASTER_KEY}", with("sk-1"), true),
            ("general_settings: {master_key: os.environ/LITELLM_MASTER_KEY}", with(""), false),
            ("{general_settings: {master_key: os.environ/A}, environment_variables: {A: sk-1}}", of(json!([])), true),
            ("general_settings: {master_key: os.environ/A}", with("sk-1"), false),
            (
                "general_settings: {master_key: os.environ/A}",
                of(json!([{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}])),
                true,
            ),
        ] {
            assert_eq!(has_key(config, &container), is, "{config}");
        }
        let permission = |value: &str| is_permitted(&of(json!([{"name": PERMISSION, "value": value}])));
        assert!(permission("true") && permission("True") && !permission("false") && !permission(""));
    }
}
