//! Settings that hold everywhere, tried on the samples of policies: what a schema takes of a value, Kubernetes may refuse.

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

/// Whether what these policies plan for their own samples can be with these settings. What this machine is too busy to try
/// says nothing of them.
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

/// An error that says something of the settings.
pub(super) fn lasting(error: LoadError) -> Option<LoadError> {
    error.is_lasting().then_some(error)
}

/// Whether any of the settings is for this policy.
fn is_given(policy: &Arc<Policy>, layers: &[Layer]) -> Result<bool, LoadError> {
    let settings = policy.schema().resolve(&policy.id().name, layers)?;
    Ok(settings.sources().any(|(_, source)| source.origin != Origin::SchemaDefault))
}
