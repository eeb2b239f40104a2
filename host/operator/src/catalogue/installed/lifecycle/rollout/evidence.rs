//! Judges from the objects whether a rollout harms them. This code is pure.
//!
//! The evidence is the condition `Ready` of the objects, with its transition time. So no process has to remember anything:
//! an object that became not ready after it was moved was ready before.

use jiff::{SignedDuration, Timestamp};
use kaos_crds::PolicyRollout;

use crate::{catalogue::MovedObjects, timestamps::parsed, watch::ObjectKey};

/// The facts about one object that a rollout concerns.
#[derive(Debug, Clone)]
pub(super) struct ObjectSight {
    pub(super) key: ObjectKey,
    pub(super) hash: u64,
    /// Whether a pass with the revision has ended.
    pub(super) had_pass: bool,
    /// The number of pods of the object's children.
    pub(super) pods: u64,
    pub(super) is_ready: bool,
    /// The time at which the condition `Ready` got its status. `None` if the object has no such condition yet.
    pub(super) ready_since: Option<Timestamp>,
    pub(super) created: Option<Timestamp>,
}

/// The evidence for and against the revision of a rollout.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Evidence {
    /// The number of moved objects.
    pub(super) moved: usize,
    /// The number of moved objects that wait for a pass with the revision.
    pub(super) waiting: usize,
    /// The number of moved objects that are ready.
    pub(super) ready: usize,
    /// The number of pods of moved objects that wait for a pass, or that were ready before and are not ready.
    pub(super) unavailable: u64,
    /// The moved objects that were ready before and are not ready, the longest first, with the time since when.
    pub(super) harmed: Vec<(ObjectKey, Timestamp)>,
    /// The number of objects that are not moved, and that are ready or were ready when the rollout began.
    others: usize,
    /// The number of these objects that are not ready.
    others_harmed: usize,
}

impl Evidence {
    pub(super) fn of(rollout: &PolicyRollout, objects: &[ObjectSight]) -> Self {
        let steps: Vec<(u64, Timestamp)> = rollout
            .steps
            .iter()
            .filter_map(|step| Some((MovedObjects::read_hash(step.up_to.as_deref()?)?, parsed(step.since.as_deref())?)))
            .collect();
        let started = parsed(Some(&rollout.started));
        let mut evidence = Self::default();
        for object in objects {
            let moved_at = steps.iter().find(|(up_to, _)| object.hash <= *up_to).map(|(_, since)| *since);
            // A new object was never ready, so it shows nothing until it is ready.
            let harmed_since = |begin: Timestamp| {
                let is_new = object.created.is_some_and(|created| created >= begin);
                object.ready_since.filter(|since| !object.is_ready && !is_new && *since >= begin)
            };
            if let Some(moved_at) = moved_at {
                evidence.moved += 1;
                evidence.waiting += usize::from(!object.had_pass);
                evidence.ready += usize::from(object.is_ready);
                let harmed = harmed_since(moved_at);
                if !object.had_pass || harmed.is_some() {
                    evidence.unavailable = evidence.unavailable.saturating_add(object.pods);
                }
                evidence.harmed.extend(harmed.map(|since| (object.key.clone(), since)));
            } else {
                let is_harmed = started.and_then(harmed_since).is_some();
                evidence.others += usize::from(object.is_ready || is_harmed);
                evidence.others_harmed += usize::from(is_harmed);
            }
        }
        evidence.harmed.sort_by(|(one, since), (other, later)| (since, one).cmp(&(later, other)));
        evidence
    }

    /// Returns the moved objects that are not ready for longer than `patience`.
    pub(super) fn lasting(&self, patience: SignedDuration, now: Timestamp) -> &[(ObjectKey, Timestamp)] {
        let is_lasting = |(_, since): &(ObjectKey, Timestamp)| now.duration_since(*since) >= patience;
        &self.harmed[..self.harmed.partition_point(is_lasting)]
    }

    /// Returns whether the other objects are no better off than the moved ones, so that the revision is not the cause.
    pub(super) fn is_trouble_of_all(&self) -> bool {
        let judged = self.ready + self.harmed.len();
        self.others_harmed > 0 && self.others_harmed * judged >= self.harmed.len() * self.others
    }

    /// Returns the others that are not ready, and all others that can be compared.
    pub(super) fn others(&self) -> (usize, usize) {
        (self.others_harmed, self.others)
    }
}
