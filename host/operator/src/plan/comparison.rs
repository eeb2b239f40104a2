//! Renders many objects with two sets of policies, and compares the results.

use std::collections::{BTreeMap, BTreeSet};

use kaos_policy::{
    contract::{Reference, ResourceType, Target},
    lookup::Sighting,
    render::RenderError,
};

use super::{Answers, Around, Difference, difference};
use crate::{
    offline::{Answering, StoredObjects, World},
    parallel::on_all_processors,
    plan_gates::decisive,
};

/// All differences between two sets of policies, and the needs of the passes that computed them.
#[derive(Debug, Clone, Default)]
pub struct Comparison {
    /// One difference for each object whose policies or settings differ before and after the change, in the order of
    /// the objects.
    pub differences: Vec<Difference>,
    /// The needs of all passes.
    pub needs: BTreeSet<Target>,
    /// The children whose existence decides whether plan gates hold back a plan.
    pub gated: BTreeSet<Target>,
}

/// The caller's knowledge about objects that are not in the [`StoredObjects`].
pub struct Unstored<'a> {
    /// Returns the lookup result that passes get instead of the objects of a type.
    pub hidden: &'a (dyn Fn(&ResourceType) -> Option<Sighting> + Sync),
    /// Returns whether the caller has read a target from a cluster, so that the stored objects include all its objects.
    pub is_read: &'a (dyn Fn(&Target) -> bool + Sync),
}

/// Renders each object whose policies or settings differ before and after a change, and compares the results. Uses one
/// thread for each processor.
pub fn compare(
    stored: &StoredObjects,
    before: &dyn Answering,
    after: &dyn Answering,
    unstored: &Unstored<'_>,
) -> Result<Comparison, RenderError> {
    let Unstored { hidden, is_read } = unstored;
    let concerned: Vec<usize> = stored
        .objects()
        .iter()
        .enumerate()
        .filter_map(|(position, object)| {
            let sides = (before.renderer(object), after.renderer(object));
            match sides {
                (None, None) => None,
                (Some(before), Some(after)) if std::ptr::eq(before, after) => None,
                _ => Some(position),
            }
        })
        .collect();
    let share = |first: usize, threads: usize| {
        let (before, after) = (World::new(stored, before, hidden), World::new(stored, after, hidden));
        let mut share = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        let live = |child: &Reference| stored.named(child).cloned();
        let exists = |child: &Reference| {
            let is_known = stored.named(child).is_some() || is_read(&Target::Named(child.clone()));
            is_known.then(|| stored.named(child).is_some())
        };
        for position in concerned.iter().skip(first).step_by(threads) {
            let (before, after) = (before.entry(*position).transpose()?, after.entry(*position).transpose()?);
            for entry in before.iter().chain(&after) {
                share.1.extend(entry.rendered.needs.iter().map(|need| need.target.clone()));
                let gated = entry.rendered.planned().filter(|planned| !planned.gates.is_empty());
                share.2.extend(gated.into_iter().flat_map(decisive).map(Target::Named));
            }
            let answers = [&before, &after].map(|entry| entry.as_ref().map(|entry| Answers::of(&entry.rendered)));
            let around = Around { live: &live, exists: &exists, settings: Vec::new() };
            share.0.push((*position, difference(&stored.objects()[*position], answers, &around)));
        }
        Ok::<_, RenderError>(share)
    };
    let (mut ordered, mut needs, mut gated) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
    for share in on_all_processors(concerned.len(), share) {
        let (differences, asked, decisive) = share?;
        ordered.extend(differences);
        needs.extend(asked);
        gated.extend(decisive);
    }
    Ok(Comparison { differences: ordered.into_values().collect(), needs, gated })
}
