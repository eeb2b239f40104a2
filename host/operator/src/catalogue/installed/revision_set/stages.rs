//! The policy tables during rollouts: the table in which the predecessors of the moving revisions still serve.

use std::collections::{BTreeMap, BTreeSet};

use kaos_crds::{PolicyRevisionStatus, PolicyRollout};
use kaos_policy::{contract::ResourceType, rollout::RolloutUnit, settings::Layer};

use super::{AdmittedRevision, Content, RevisionSet, Unfit};
use crate::catalogue::{MovedObjects, Predecessors, Reach, RolloutStage, Staging};

impl RevisionSet {
    /// Returns the rollouts of the serving revisions, and the policies that answer for objects that are not moved.
    pub(super) fn staging(
        &self,
        candidate: Option<&str>,
        serving: &BTreeSet<String>,
        shared: &[Layer],
    ) -> Result<Staging, Unfit> {
        let stages: Vec<RolloutStage> = serving.iter().filter_map(|name| self.stage(name)).collect();
        let mut before = BTreeMap::new();
        for predecessors in Staging::combinations(&stages) {
            let serving = self.before_rollouts(serving, &stages, predecessors);
            before.insert(predecessors, self.arrange_one(candidate, &serving, shared)?.answers);
        }
        Ok(Staging { stages, before })
    }

    /// Returns the rollout of a revision, or `None` if the revision serves all objects.
    pub(crate) fn stage(&self, name: &str) -> Option<RolloutStage> {
        let entry = self.entries.get(name)?;
        let moved = entry.stage.clone()?;
        let before = entry.predecessor.as_ref();
        let yielding = before.and_then(|before| self.entries.get(before));
        let all = || std::iter::once(entry).chain(yielding);
        Some(RolloutStage {
            revision: name.into(),
            moved,
            is_local: matches!(entry.reach, Reach::Own(_)),
            kinds: all().flat_map(|entry| self.concerned_kinds(entry)).collect(),
            scopes: all().map(|entry| entry.reach.clone()).collect(),
            can_yield: before.is_none() || yielding.is_some_and(|entry| entry.content.is_loaded()),
        })
    }

    /// Returns the rollout that must end before a candidate can begin its own: a rollout over the same objects. A
    /// tenant's rollout never delays a rollout of the owner.
    pub(crate) fn rollout_beside(&self, name: &str, serving: &BTreeSet<String>) -> Option<String> {
        let entry = self.entries.get(name)?;
        let is_local = matches!(entry.reach, Reach::Own(_));
        let kinds = self.concerned_kinds(entry);
        let meets = |stage: &RolloutStage| {
            let same_scope = stage.scopes.iter().any(|scope| scope.overlaps(&entry.reach));
            stage.is_local == is_local && same_scope && !stage.kinds.is_disjoint(&kinds)
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
            Content::Unloaded(_, kinds, _) | Content::Lost { kinds, .. } => kinds.iter().cloned().collect(),
        }
    }

    /// Returns the revisions that serve where rollouts have not moved the objects.
    fn before_rollouts(
        &self,
        serving: &BTreeSet<String>,
        stages: &[RolloutStage],
        Predecessors { of_owner, of_tenants }: Predecessors,
    ) -> BTreeSet<String> {
        let mut serving = serving.clone();
        for stage in stages.iter().filter(|stage| if stage.is_local { of_tenants } else { of_owner }) {
            serving.remove(&*stage.revision);
            let before = self.entries.get(&*stage.revision).and_then(|entry| entry.predecessor.as_ref());
            serving.extend(before.filter(|before| self.entries.contains_key(*before)).cloned());
        }
        serving
    }
}

/// Returns the objects that the recorded rollout of a revision has moved. Returns `None` if the revision serves all
/// objects.
pub(crate) fn moved_objects(status: &PolicyRevisionStatus) -> Option<MovedObjects> {
    let rollout = status.rollout.as_ref().filter(|rollout| status.state.is_let_in() && rollout.is_open())?;
    Some(moved_by(rollout))
}

/// Returns the objects that a rollout has moved.
pub(crate) fn moved_by(rollout: &PolicyRollout) -> MovedObjects {
    let by = if rollout.by == RolloutUnit::Namespace.name() { RolloutUnit::Namespace } else { RolloutUnit::Object };
    let up_to = rollout.current().and_then(|step| MovedObjects::read_hash(step.up_to.as_deref()?));
    MovedObjects { salt: rollout.salt.clone(), by, up_to }
}
