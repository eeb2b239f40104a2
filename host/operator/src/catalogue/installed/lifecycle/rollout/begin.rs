//! Decides whether a candidate serves in steps, and what it waits for before its rollout begins.

use std::collections::BTreeSet;

use kaos_crds::{PolicyRollout, PolicyRolloutStep, RevisionState};

use super::told;
use crate::{
    catalogue::{
        Conflict, Reach,
        installed::{
            lifecycle::{Lifecycle, candidate::Candidate, not_admitted::NotAdmitted},
            observed::{ANOTHER_ROLLOUT, OLD_DEFINITION, PREDECESSOR_MISSING},
            revision_set::AdmittedRevision,
        },
    },
    timestamps::written,
};

fn begins_after(other: &str) -> String {
    format!("the rollout begins when the rollout of {other} over the same objects has ended")
}

impl Lifecycle {
    /// Returns the rollout with which a candidate begins to serve, or `None` if the candidate serves all objects at
    /// once. A way back, which is a return to the previous revision, never goes in steps: a person who repairs a
    /// cluster must not wait.
    pub(in super::super) fn rollout_of(&self, candidate: &Candidate) -> Option<PolicyRollout> {
        let Candidate { name, entry, before, .. } = candidate;
        let status = self.records.status(name);
        if status.state == RevisionState::Active {
            return status.open_rollout().cloned();
        }
        // If the predecessor is lost and its source was deleted, no policy answers for its objects. So do not make
        // these objects wait for a rollout.
        if self.way_back(candidate).is_some() || (before.is_empty() && self.has_lost_predecessor(entry)) {
            return None;
        }
        // The objects must always have a default policy. So a default policy whose predecessor is lost serves all
        // objects at once.
        if entry.reach == Reach::Process && self.has_lost_predecessor(entry) {
            return None;
        }
        // A corrected package that replaces a revision during its rollout moves the same objects first.
        let salt = before.iter().find_map(|before| Some(self.records.status(before).open_rollout()?.salt.clone()));
        self.new_rollout(name, entry, salt)
    }

    /// Returns a new rollout of a revision, or `None` if the revision serves all objects at once. The parameter `salt`
    /// decides which objects move first; without it, the digest of the package decides.
    pub(in super::super) fn new_rollout(
        &self,
        name: &str,
        entry: &AdmittedRevision,
        salt: Option<String>,
    ) -> Option<PolicyRollout> {
        let replaces_pods = || self.replaces_pods(name);
        let steps = entry.rollout.steps(&self.tools.rollout_defaults, replaces_pods).filter(|_| !entry.pinned)?;
        let own = || self.records.get(name).map(|revision| revision.spec.package_digest.clone()).unwrap_or_default();
        let step = |share: &kaos_policy::rollout::Share| PolicyRolloutStep {
            share: share.to_string(),
            ..PolicyRolloutStep::default()
        };
        let mut rollout = PolicyRollout {
            started: written(self.tools.clock.now()),
            by: steps.by.name().to_owned(),
            pause: steps.pause.to_string(),
            patience: steps.patience.to_string(),
            max_unavailable: steps.max_unavailable.to_string(),
            salt: salt.unwrap_or_else(own),
            steps: steps.shares.iter().map(step).collect(),
            ..PolicyRollout::default()
        };
        rollout.summary = told::summary(&rollout);
        Some(rollout)
    }

    /// Returns whether a revision would replace pods. If its effect is not known, assumes that the revision replaces
    /// pods.
    fn replaces_pods(&self, name: &str) -> bool {
        let preview = self.previews.last(name).cloned().or_else(|| self.records.status(name).preview);
        preview.is_none_or(|preview| preview.pods_replaced > 0 || preview.unknown > 0)
    }

    /// Returns the predecessor of a candidate that replaces the serving revision `before`. While `before` is being
    /// rolled out itself, the predecessor is the revision that still serves the objects that are not moved.
    pub(in super::super) fn predecessor_after(&self, name: &str, before: &str) -> Option<String> {
        let status = self.records.status(before);
        if status.open_rollout().is_none() {
            return Some(before.to_owned());
        }
        // On the way back, the candidate is itself the revision that still serves the objects that are not moved.
        let is_other = |other: &String| other != name;
        match status.predecessor {
            Some(predecessor) if is_other(&predecessor) => Some(predecessor),
            Some(_) => self.records.status(name).predecessor.filter(is_other),
            None => None,
        }
    }

    /// Returns whether the predecessor of a revision cannot be loaded any more.
    pub(in super::super) fn has_lost_predecessor(&self, entry: &AdmittedRevision) -> bool {
        let before = entry.predecessor.as_ref().and_then(|before| self.revisions.entries.get(before));
        before.is_some_and(|before| before.content.is_lost())
    }

    /// Returns the predecessor of a candidate if this predecessor is recorded as serving, but is not loaded. In this
    /// case, an older revision or no policy answers in the predecessor's place. The rollout must not begin now, because
    /// all objects would wait.
    fn unloaded_predecessor(&self, Candidate { name, entry, before, .. }: &Candidate) -> Option<String> {
        let serves = self.records.status(name).state == RevisionState::Active;
        let predecessor = entry.predecessor.as_ref().filter(|_| !serves && !before.is_empty())?;
        let is_loaded = self.revisions.entries.get(predecessor).is_some_and(|entry| entry.content.is_loaded());
        (!is_loaded).then(|| predecessor.clone())
    }

    /// Returns why the rollout of candidates that serve together cannot begin now.
    ///
    /// The reason is worded for the last candidate.
    pub(in super::super) fn waits_for_rollout(
        &mut self,
        candidates: &[Candidate],
        serving: &BTreeSet<String>,
    ) -> Option<NotAdmitted> {
        if !candidates.iter().any(|candidate| self.rollout_of(candidate).is_some()) {
            return None;
        }
        let candidate = candidates.last()?;
        let Candidate { name, entry, .. } = candidate;
        if candidates.len() > 1 {
            let message = "the policy and settings of another package fit only each other, so they cannot start to serve \
                           in steps: put the settings into the package of the policy, or use rollout.mode: now";
            return Some(NotAdmitted::refused("NotInSteps", message));
        }
        let waits = if !self.records.has_rollouts() {
            NotAdmitted::pending("OldDefinition", OLD_DEFINITION)
        } else if let Some(unloaded) = self.unloaded_predecessor(candidate) {
            let message = format!(
                "the rollout begins when the operator can load {unloaded}, because this revision serves the objects \
                 that are not moved yet: install the package of {unloaded} again, or use rollout.mode: now"
            );
            NotAdmitted::pending(PREDECESSOR_MISSING, message)
        } else {
            let is_active = |other: &String| self.records.status(other).state == RevisionState::Active;
            let active = serving.iter().filter(|other| is_active(other)).cloned().collect();
            let other = self.revisions.rollout_beside(name, &active)?;
            NotAdmitted::pending(ANOTHER_ROLLOUT, begins_after(&other))
        };
        // Keep the checked content, so that the next attempt comes soon.
        self.waiting.insert(name.clone(), entry.content.clone());
        Some(waits)
    }

    /// Returns why a revision that waits for a place could not begin its rollout now. Returns `None` for a revision
    /// that serves all objects at once. Does not wait for the rollout of a revision whose source was deleted, because
    /// the waiting revision replaces that revision. If another revision has the place, returns this conflict as the
    /// reason, because the end of a rollout does not free the place.
    pub(in super::super) fn waits_in_conflict(
        &self,
        name: &str,
        entry: &AdmittedRevision,
        serving: &BTreeSet<String>,
    ) -> Option<Conflict> {
        self.new_rollout(name, entry, None).filter(|_| !self.has_lost_predecessor(entry))?;
        let or_place = |waits: Conflict| self.revisions.conflict_of(name, serving).unwrap_or(waits);
        if !self.records.has_rollouts() {
            return Some(or_place(Conflict { reason: "OldDefinition", message: OLD_DEFINITION.to_owned() }));
        }
        let counts = |other: &String| {
            self.records.status(other).state == RevisionState::Active && !self.without_source.contains(other)
        };
        let active = serving.iter().filter(|other| counts(other)).cloned().collect();
        let other = self.revisions.rollout_beside(name, &active)?;
        Some(or_place(Conflict { reason: ANOTHER_ROLLOUT, message: begins_after(&other) }))
    }

    /// Makes the operator retry all packages that wait for the end of another rollout.
    pub(in super::super) fn wake_rollouts(&mut self) {
        let records = &self.records;
        self.due.retain(|name, _| records.status(name).reason.as_deref() != Some(ANOTHER_ROLLOUT));
    }
}
