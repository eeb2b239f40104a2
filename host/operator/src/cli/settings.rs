//! Collects the settings layers of a run: environment, the operator's own ConfigMap, policy files, `--settings`,
//! `--set`.

use std::path::Path;

use anyhow::Context;
use k8s_openapi::api::core::v1::ConfigMap;
use kaos_policy::settings::{self, Layer, Origin, Schema};

use super::output::complain;
use crate::{
    catalogue::{OPERATOR_CONFIG, environment, operator_config},
    input::{self, Document},
    policies::Loaded,
};

/// Returns all layers, in no order: the origin of each decides its precedence.
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

/// Returns the layer of the operator's own ConfigMap if objects from files contain it, since the files stand for a
/// cluster. Warns of variables that are probably misspelt.
pub(super) fn held(
    documents: &[Document],
    operator_namespace: &str,
    policies: &[Loaded],
) -> anyhow::Result<Option<Layer>> {
    let is_it = |document: &&Document| {
        let identity = &document.identity;
        identity.group.is_empty()
            && identity.kind == "ConfigMap"
            && identity.namespace.as_deref() == Some(operator_namespace)
            && identity.name == OPERATOR_CONFIG
    };
    let Some(Document { origin, identity, object }) = documents.iter().find(is_it) else { return Ok(None) };
    let config: ConfigMap = serde_json::from_value(object.clone()).with_context(|| format!("{origin}: {identity}"))?;
    let layer = operator_config(&config);
    for (variable, meant) in layer.misspelt(policies.iter().map(|loaded| loaded.policy.schema())) {
        let why = "no policy has a setting for this variable, ignored";
        complain("warning", format_args!("{origin}: {identity}: data.{variable}: {why}: did you mean {meant}?"));
    }
    Ok(Some(layer))
}

/// Returns the schema of each policy, by the policy's name.
pub(super) fn schemas(policies: &[Loaded]) -> Vec<(&str, &Schema)> {
    policies.iter().map(|loaded| (loaded.policy.id().name.as_str(), loaded.policy.schema())).collect()
}
