//! The settings that hold for a run: environment, policy files, `--settings`, `--set`.

use std::path::Path;

use kaos_policy::settings::{self, Layer, Origin, Schema};

use crate::{catalogue::environment, input, policies::Loaded};

/// All layers, in no order: the origin of each says how strong it is.
pub(super) fn layers(policies: &[Loaded], file: Option<&str>, set: &[String]) -> anyhow::Result<Vec<Layer>> {
    let mut layers = vec![environment(std::env::vars_os())];
    for Loaded { policy, settings, origin } in policies {
        if !settings.is_null() {
            layers.push(Layer::tree(Origin::ClusterPolicy(origin.to_string()), &policy.id().name, settings.clone()));
        }
    }
    let schemas = schemas(policies);
    if let Some(file) = file {
        let document = input::document(Path::new(file))?;
        // An empty file is one without settings.
        if !document.is_null() {
            layers.extend(settings::file(file, &document, &schemas)?);
        }
    }
    layers.extend(settings::assignments(set, &schemas)?);
    Ok(layers)
}

/// The schema of each policy, by the policy's name.
pub(super) fn schemas(policies: &[Loaded]) -> Vec<(&str, &Schema)> {
    policies.iter().map(|loaded| (loaded.policy.id().name.as_str(), loaded.policy.schema())).collect()
}
