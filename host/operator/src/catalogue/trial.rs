//! Tries settings for the whole cluster: renders the samples of the policies with these settings. The operator needs
//! trials, because Kubernetes may refuse a value that the settings schema accepts.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kaos_policy::{
    contract::{Cluster, ResourceType},
    gate::{self, LoadError, Server},
    policy::{Policy, Stack},
    settings::{Layer, Origin},
};

/// Checks that the plans of these policies for their own samples are valid with these settings. Ignores temporary
/// errors, which only show that this machine is too busy for a trial.
pub(crate) fn try_settings(
    stacks: &BTreeMap<ResourceType, Stack>,
    layers: &[Layer],
    cluster: &Cluster,
    server: &dyn Server,
) -> Result<(), LoadError> {
    let mut tried = BTreeSet::new();
    let policies = stacks.values().flat_map(|stack| std::iter::once(stack.base()).chain(stack.overlays()));
    for policy in policies.filter(|policy| tried.insert(policy.id().clone())) {
        if is_given(policy, layers)? {
            gate::try_settings(policy, layers, cluster, server).or_else(|error| lasting(error).map_or(Ok(()), Err))?;
        }
    }
    Ok(())
}

/// Returns the error if the error is about the settings; `None` if the error is temporary.
pub(super) fn lasting(error: LoadError) -> Option<LoadError> {
    error.is_lasting().then_some(error)
}

/// Returns whether any of the layers sets a value for this policy.
fn is_given(policy: &Arc<Policy>, layers: &[Layer]) -> Result<bool, LoadError> {
    let settings = policy.settings(layers)?;
    Ok(settings.sources().any(|(_, source)| source.origin != Origin::SchemaDefault))
}
