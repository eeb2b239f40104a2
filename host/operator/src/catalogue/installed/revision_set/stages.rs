//! The running rollouts, and the policy tables in which the predecessors still serve.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kaos_crds::{PolicyRevisionStatus, PolicyRollout};
use kaos_policy::{contract::ResourceType, rollout::RolloutUnit, settings::Layer};

use super::{AdmittedRevision, Content, RevisionSet, Unfit};
use crate::catalogue::{Conflict, MovedObjects, Predecessors, Reach, RolloutStage, Staging};

impl RevisionSet {
    /// Returns the rollouts of the serving revisions, and the policies that answer for the objects that these rollouts
    /// have not moved. Skips a revision in `conflicts`, because it serves no object.
    pub(super) fn staging(
        &self,
        candidate: Option<&str>,
        serving: &BTreeSet<String>,
        conflicts: &BTreeMap<Arc<str>, Conflict>,
        shared: &[Layer],
    ) -> Result<Staging, Unfit> {
        let answering = serving.iter().filter(|name| !conflicts.contains_key(name.as_str()));
        let stages: Vec<RolloutStage> = answering.filter_map(|name| self.stage(name)).collect();
        let mut before = BTreeMap::new();
        for predecessors in Staging::combinations(&stages) {
            let serving = self.before_rollouts(serving, &stages, predecessors);
            let undone = stages.iter().filter(|stage| predecessors.undo(stage));
            let arranged = self.arrange_one(candidate, &serving, shared).map_err(|unfit| Unfit {
                before: undone.map(|stage| Arc::clone(&stage.revision)).collect(),
                ..unfit
            })?;
            before.insert(predecessors, arranged.answers);
        }
        Ok(Staging { stages, before })
    }

    /// Returns the rollout of a revision, or `None` if the revision serves all objects.
    pub(crate) fn stage(&self, name: &str) -> Option<RolloutStage> {
        let entry = self.entries.get(name)?;
        let moved = entry.stage.clone()?;
        let (kinds, scopes) = self.concern(entry);
        let before = entry.predecessor.as_ref();
        let is_loaded = |before: &String| self.entries.get(before).is_some_and(|entry| entry.content.is_loaded());
        Some(RolloutStage {
            revision: name.into(),
            moved,
            is_local: entry.is_local(),
            kinds,
            scopes,
            policies: self.policies_of(entry),
            predecessor: before.map(|before| before.as_str().into()),
            can_yield: before.is_none_or(is_loaded),
            is_lost: entry.content.is_lost(),
        })
    }

    /// Returns the kinds and the scopes of the objects that a rollout of a revision concerns. The predecessor can have
    /// other kinds and another scope, and its objects move too.
    fn concern(&self, entry: &AdmittedRevision) -> (BTreeSet<ResourceType>, Vec<Reach>) {
        let yielding = entry.predecessor.as_ref().and_then(|before| self.entries.get(before));
        let all = || std::iter::once(entry).chain(yielding);
        (
            all().flat_map(|entry| self.concerned_kinds(entry)).collect(),
            all().map(|entry| entry.reach.clone()).collect(),
        )
    }

    /// Returns the names of the policies that a revision and its predecessor contain or configure.
    fn policies_of(&self, entry: &AdmittedRevision) -> BTreeSet<String> {
        let yielding = entry.predecessor.as_ref().and_then(|before| self.entries.get(before));
        std::iter::once(entry).chain(yielding).map(|entry| entry.content.policy_name().to_owned()).collect()
    }

    /// Returns the revision whose rollout must end before a candidate can begin its own rollout, because both rollouts
    /// concern the same objects. A tenant's rollout never delays a rollout of the owner.
    pub(crate) fn rollout_beside(&self, name: &str, serving: &BTreeSet<String>) -> Option<String> {
        let entry = self.entries.get(name)?;
        let (kinds, scopes) = self.concern(entry);
        let meets = |stage: &RolloutStage| {
            let overlaps = |scope: &Reach| scopes.iter().any(|own| scope.overlaps(own));
            let same_scope = stage.scopes.iter().any(overlaps);
            stage.is_local == entry.is_local() && same_scope && !stage.kinds.is_disjoint(&kinds)
        };
        let others = serving.iter().filter(|other| *other != name);
        others.filter_map(|other| self.stage(other)).find(meets).map(|stage| stage.revision.to_string())
    }

    fn concerned_kinds(&self, entry: &AdmittedRevision) -> BTreeSet<ResourceType> {
        match &entry.content {
            Content::Policy(policy, _) => {
                policy.descriptor().claims.iter().map(|claim| claim.primary.clone()).collect()
            }
            Content::Settings(policy, _) => self.claimed_by(policy).into_iter().cloned().collect(),
            // The PolicyRevision of settings contains no kinds.
            Content::Lost { policy, kinds, .. } if kinds.is_empty() => {
                self.claimed_by(policy).into_iter().cloned().collect()
            }
            Content::Unloaded(_, kinds, _) | Content::Lost { kinds, .. } => kinds.iter().cloned().collect(),
        }
    }

    /// Returns the revisions that serve the objects that the rollouts in `stages` have not moved.
    ///
    /// Replaces each revision that is being rolled out by its predecessor.
    fn before_rollouts(
        &self,
        serving: &BTreeSet<String>,
        stages: &[RolloutStage],
        predecessors: Predecessors,
    ) -> BTreeSet<String> {
        let mut serving = serving.clone();
        for stage in stages.iter().filter(|stage| predecessors.undo(stage)) {
            serving.remove(&*stage.revision);
            let before = self.entries.get(&*stage.revision).and_then(|entry| entry.predecessor.as_ref());
            serving.extend(before.filter(|before| self.entries.contains_key(*before)).cloned());
        }
        serving
    }
}

/// Returns the objects that the recorded rollout of a revision has moved. Returns `None` if the revision serves all
/// objects, or if it waits for a place.
pub(crate) fn moved_objects(status: &PolicyRevisionStatus) -> Option<MovedObjects> {
    status.open_rollout().map(moved_by)
}

/// Returns the objects that a rollout has moved.
pub(crate) fn moved_by(rollout: &PolicyRollout) -> MovedObjects {
    let by = if rollout.by == RolloutUnit::Namespace.name() { RolloutUnit::Namespace } else { RolloutUnit::Object };
    let up_to = rollout.current().and_then(|step| MovedObjects::read_hash(step.up_to.as_deref()?));
    MovedObjects { salt: rollout.salt.clone(), by, up_to }
}
