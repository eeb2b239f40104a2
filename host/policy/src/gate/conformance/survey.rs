//! Evaluates the samples once more, for remarks about origins and manifests.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeSet,
    sync::Arc,
};

use serde_json::Value;

use super::{
    super::LoadError,
    Case,
    idle::{IdleOrigins, Schemas},
};
use crate::{code::World, contract::Cluster, kubernetes::Checks, policy::Policy, settings::Layer};

/// The findings about the samples of a policy.
#[derive(Debug, Clone)]
pub struct Survey {
    /// A sentence for each origin that covers no value in any sample, or that names a place that cannot exist. The
    /// author of the policy probably wrote a wrong path or place. Empty for an overlay, because the gate itself makes
    /// the plan that the overlay amends.
    pub idle_origins: Vec<String>,
    /// The manifests for each sample that ends in a plan, with the name of the sample.
    pub plans: Vec<(String, Vec<Value>)>,
}

/// Evaluates the samples once.
pub(in crate::gate) fn survey_samples(
    policy: &Arc<Policy>,
    settings: &[Layer],
    cluster: &Cluster,
    schemas: &Schemas<'_>,
) -> Result<Survey, LoadError> {
    let (used, dropped, checks) = (Cell::new(0), RefCell::new(BTreeSet::new()), Cell::new(Checks::Nothing));
    let answers = RefCell::default();
    let (mut idle, mut plans) = (IdleOrigins::default(), Vec::new());
    for claim in &policy.descriptor().claims {
        for sample in &claim.samples {
            let case = Case {
                turns: None,
                policy,
                claim,
                sample,
                used: &used,
                dropped: &dropped,
                answers: &answers,
                checks: &checks,
            };
            let rendered = case.render(&case.renderer(settings, cluster)?, &case.object()?)?;
            if policy.world() == World::Policy {
                idle.add(&rendered, &claim.primary, policy.schema().document(), schemas);
            }
            if let Some(planned) = rendered.planned() {
                plans.push((sample.name.clone(), planned.manifests.clone()));
            }
        }
    }
    Ok(Survey { idle_origins: idle.told(), plans })
}
