//! Finds origins that cover no value in any sample.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{super::LoadError, Case};
use crate::{
    code::World,
    contract::Cluster,
    kubernetes::{Checks, VERSION, has_field},
    origins::Coverage,
    policy::Policy,
    settings::Layer,
};

/// Evaluates the samples once, and returns a sentence for each origin with a wrong path or place: the kind has no such
/// field, or the field has a value and no sample has an equal value in the place. An origin for a field that no sample
/// uses is not wrong. Ignores overlays, because the gate makes the plan below an overlay.
pub(in crate::gate) fn idle_origins(
    policy: &Arc<Policy>,
    settings: &[Layer],
    cluster: &Cluster,
) -> Result<Vec<String>, LoadError> {
    if policy.world() != World::Policy {
        return Ok(Vec::new());
    }
    let (used, dropped, checks) = (Cell::new(0), RefCell::new(BTreeSet::new()), Cell::new(Checks::Nothing));
    let answers = RefCell::default();
    let mut origins: BTreeMap<[String; 3], Known> = BTreeMap::new();
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
            for (origin, of, coverage) in rendered.declared_origins() {
                let known = origins.entry([of.kind.clone(), origin.path.clone(), origin.from.clone()]).or_default();
                match coverage {
                    Coverage::Covers => known.covers = true,
                    Coverage::Differs => known.differs = true,
                    Coverage::Absent(path) => known.no_field |= !has_field(&of, &path),
                    Coverage::NoItem => {}
                }
            }
        }
    }
    let told = origins.into_iter().filter_map(|([kind, path, from], known)| told(&kind, &path, &from, &known));
    Ok(told.collect())
}

/// The effects of one origin in all samples.
#[derive(Default)]
struct Known {
    covers: bool,
    differs: bool,
    no_field: bool,
}

fn told(kind: &str, path: &str, from: &str, known: &Known) -> Option<String> {
    let path = if path.is_empty() { "the whole manifest" } else { path };
    let origin = format!("the origin of {path} of the {kind}, from {from}, covers no value");
    match known {
        Known { no_field: true, .. } => {
            Some(format!("{origin}: Kubernetes {VERSION} has no such field: correct the path"))
        }
        Known { covers: false, differs: true, .. } => Some(format!(
            "{origin} in any sample: correct the path or the place, or add a sample with the same value in both"
        )),
        Known { .. } => None,
    }
}
