//! Collects the settings layers of a run: preset, environment, the operator's own ConfigMap, policy files,
//! `--settings`, `--set`.

use std::path::Path;

use anyhow::Context;
use k8s_openapi::api::core::v1::ConfigMap;
use kaos_policy::settings::{self, Layer, Origin, Schema};

use super::output::complain;
use crate::{
    catalogue::{environment, operator_config},
    config_maps::OPERATOR_CONFIG,
    input::{self, Document},
    policies::Loaded,
    presets::{COMPATIBILITY, Preset},
};

/// Returns all layers. The origin of a layer decides its precedence. Of two layers with the same precedence, the later
/// layer overrides the earlier layer.
pub(super) fn layers(policies: &[Loaded], file: Option<&str>, set: &[String]) -> anyhow::Result<Vec<Layer>> {
    let mut layers = vec![environment(std::env::vars_os())];
    for Loaded { policy, settings, origin } in policies {
        if !settings.is_null() {
            layers.push(Layer::tree(Origin::PolicyFile(origin.to_string()), &policy.id().name, settings.clone()));
        }
    }
    let schemas = schemas(policies);
    if let Some(file) = file {
        let document = input::document(Path::new(file))?;
        // An empty file is valid and has no settings.
        if !document.is_null() {
            layers.extend(settings::file(file, &document, &schemas)?);
        }
    }
    layers.extend(settings::assignments(set, &schemas)?);
    Ok(layers)
}

/// Returns the layers of the operator's own ConfigMap and of the ConfigMap with the preset, if the files contain these
/// ConfigMaps. The files represent a cluster. Warns of variables that are probably misspelled.
pub(super) fn held(
    documents: &[Document],
    operator_namespace: &str,
    policies: &[Loaded],
) -> anyhow::Result<Vec<Layer>> {
    let mut layers = Vec::new();
    if let Some((Document { origin, identity, .. }, config)) = own(documents, operator_namespace, COMPATIBILITY)? {
        layers = Preset::of_config(&config).with_context(|| format!("{origin}: {identity}"))?.layers();
    }
    let Some((Document { origin, identity, .. }, config)) = own(documents, operator_namespace, OPERATOR_CONFIG)? else {
        return Ok(layers);
    };
    let layer = operator_config(&config);
    for (variable, meant) in layer.misspelt(policies.iter().map(|loaded| loaded.policy.schema())) {
        let why = "ignored, since no policy has a setting for this variable";
        complain("warning", format_args!("{origin}: {identity}: data.{variable}: {why}: did you mean {meant}?"));
    }
    layers.push(layer);
    Ok(layers)
}

/// Finds one of the operator's own ConfigMaps.
fn own<'a>(
    documents: &'a [Document],
    operator_namespace: &str,
    name: &str,
) -> anyhow::Result<Option<(&'a Document, ConfigMap)>> {
    let is_it = |document: &&Document| {
        let identity = &document.identity;
        identity.group.is_empty()
            && identity.kind == "ConfigMap"
            && identity.namespace.as_deref() == Some(operator_namespace)
            && identity.name == name
    };
    let Some(document) = documents.iter().find(is_it) else { return Ok(None) };
    let Document { origin, identity, object } = document;
    let config = serde_json::from_value(object.clone()).with_context(|| format!("{origin}: {identity}"))?;
    Ok(Some((document, config)))
}

/// Returns the schema of each policy, by the policy's name.
pub(super) fn schemas(policies: &[Loaded]) -> Vec<(&str, &Schema)> {
    policies.iter().map(|loaded| (loaded.policy.id().name.as_str(), loaded.policy.schema())).collect()
}
