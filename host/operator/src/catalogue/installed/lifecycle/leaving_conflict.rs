//! Begins the rollout of a revision that waited for a place, now gets the place, and serves in steps. The revision that
//! had the place serves the objects that are not moved, although its source was deleted.

use std::collections::{BTreeMap, BTreeSet};

use kaos_crds::{PolicyRollout, RevisionState};

use super::Lifecycle;
use crate::catalogue::installed::revision_set::moved_by;

impl Lifecycle {
    /// Begins the rollouts of the revisions in `answering` that wait for a place, get it with the next swap, and serve
    /// in steps. Returns these rollouts. The caller must record them.
    pub(super) fn begin_rollouts(&mut self, answering: &BTreeSet<String>) -> BTreeMap<String, PolicyRollout> {
        let waits = |name: &&String| self.records.status(name).state == RevisionState::Conflict;
        let waiting: Vec<String> = answering.iter().filter(waits).cloned().collect();
        if waiting.is_empty() {
            return BTreeMap::new();
        }
        let kept_waiting = self.revisions.kept_waiting(answering);
        let mut begun = BTreeMap::new();
        for name in waiting {
            let entry = self.revisions.entries.get(&name);
            let entry = entry.filter(|entry| entry.content.is_loaded() && !kept_waiting.contains(&name));
            // If the predecessor is lost and its source was deleted, no policy answers for its objects. So do not make
            // these objects wait for a rollout.
            let staged = entry.filter(|entry| !self.has_lost_predecessor(entry));
            let rollout = staged.and_then(|entry| self.new_rollout(&name, entry, None));
            let before = entry.and_then(|entry| entry.predecessor.clone()).filter(|before| self.had_objects(before));
            if let Some(entry) = self.revisions.entries.get_mut(&name) {
                entry.stage = rollout.as_ref().map(moved_by);
                if rollout.is_some() {
                    entry.predecessor = before;
                }
            }
            begun.extend(rollout.map(|rollout| (name, rollout)));
        }
        begun
    }

    /// Removes the rollout from the entry of a revision, so that the revision serves all objects.
    pub(super) fn end_stage(&mut self, name: &str) {
        if let Some(entry) = self.revisions.entries.get_mut(name) {
            entry.stage = None;
        }
    }

    /// Returns whether a revision answered for objects until now. If the revision did not answer, another revision has
    /// taken over its objects, and a rollout must not return these objects.
    fn had_objects(&self, name: &str) -> bool {
        let Some(snapshot) = self.tools.catalogue.load() else { return true };
        snapshot.kinds().any(|(_, answers)| answers.revisions().any(|revision| **revision == *name))
    }
}
