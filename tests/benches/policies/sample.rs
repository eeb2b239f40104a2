//! Chooses the object for which the bench measures a policy.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use kaos_policy::contract::Cluster;
use kaos_policy::lookup::Fixed;
use kaos_policy::policy::{Policy, Stack};
use kaos_policy::render::Renderer;
use serde_json::Value;

/// Returns a renderer for the policy, the largest sample of the policy's first claim, and the objects to which this
/// sample refers.
pub(crate) fn sample(policy: &Arc<Policy>) -> Result<(Renderer, Value, Fixed)> {
    let samples = &policy.descriptor().claims[0].samples;
    let fullest = samples.iter().max_by_key(|sample| sample.object.len()).context("no samples")?;
    let beside = fullest.beside.iter().map(|text| serde_json::from_str(text)).collect::<Result<Vec<Value>, _>>()?;
    let stack = Stack::single(Arc::clone(policy))?;
    let renderer = Renderer::new(&stack, &[], Cluster::default())?;
    Ok((renderer, serde_json::from_str(&fullest.object)?, Fixed::new(beside)))
}
