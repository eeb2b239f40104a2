//! Decides the next step of a rollout, from its recorded state, the objects, the time, and the request of a person.
//! This code is pure, and stores nothing: a process can end at any time, and the next process decides the same.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use kaos_crds::{PolicyRollout, PolicyRolloutPause};
use kaos_policy::rollout::Share;

use super::{
    evidence::{Evidence, Verdict},
    parts::last_move,
    reasons::{self, Lack},
    requests::{RolloutRequest, Verb},
    waits::Waits,
    watched::{Judged, Shown},
};
use crate::{
    catalogue::{MovedObjects, installed::observed::PAUSED_BY_PERSON},
    timestamps::written,
    watch::ObjectKey,
};

/// The facts from which the operator decides about an open rollout.
pub(super) struct RolloutFacts<'a> {
    pub(super) rollout: &'a PolicyRollout,
    /// The objects that the rollout concerns. `None` while the operator does not see all these objects.
    pub(super) objects: Option<&'a [Judged]>,
    /// Whether the predecessor can serve the objects that are not moved.
    pub(super) can_yield: bool,
    pub(super) request: Option<RolloutRequest>,
    /// The time at which this process began to look at the objects.
    pub(super) watched_since: Timestamp,
    pub(super) now: Timestamp,
}

/// The next step of a rollout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Decision {
    /// Nothing is due. The value is the time at which to decide again even if nothing changes.
    Wait(Option<Timestamp>),
    /// Begins the step with this index, and now moves the objects with hashes up to `up_to`. The further parts of the
    /// step move the objects with hashes up to `goal`.
    Begin {
        step: usize,
        up_to: u64,
        goal: u64,
    },
    /// Moves further objects of the current step: the objects with hashes up to `up_to`.
    Move {
        up_to: u64,
    },
    Pause(PolicyRolloutPause),
    /// Ends the pause.
    Resume,
    /// Ends the rollout: the revision serves all objects.
    Finish,
    /// Ends the rollout: the predecessor serves all objects.
    Return {
        cause: ReturnCause,
        why: String,
    },
}

/// Why a rollout returns all objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReturnCause {
    Harm,
    Person,
    /// The CustomResourceDefinition of PolicyRevision in the cluster has no fields for rollouts.
    OldDefinition,
}

impl ReturnCause {
    /// Returns the name of the cause in the metrics.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Harm => "harm",
            Self::Person => "person",
            Self::OldDefinition => "old-definition",
        }
    }
}

impl RolloutFacts<'_> {
    /// Returns the next step.
    pub(super) fn decide(&self) -> Decision {
        match &self.request {
            Some(RolloutRequest { verb: Verb::Pause, by }) => {
                return self.pause(Lack::new(PAUSED_BY_PERSON, format!("{by} paused the rollout")), Some(by));
            }
            Some(RolloutRequest { verb: Verb::Promote, .. }) => return Decision::Finish,
            // Refuse a return to a predecessor that cannot serve: weaker policies would take over all objects.
            Some(RolloutRequest { verb: Verb::Return, .. }) if !self.can_yield => return self.lacks_predecessor(),
            Some(RolloutRequest { verb: Verb::Return, by }) => {
                let why = format!("{by} returned to the revision that served before");
                return Decision::Return { cause: ReturnCause::Person, why };
            }
            Some(RolloutRequest { verb: Verb::Resume, .. }) => {
                return match self.objects.filter(|_| self.is_paused_by_operator() && self.can_yield) {
                    Some(objects) => self.accepted(objects),
                    None => Decision::Resume,
                };
            }
            None => {}
        }
        if !self.can_yield {
            // Keep the pause of a person, because only a person can end it.
            let is_by_person = self.rollout.paused.as_ref().is_some_and(|paused| paused.by.is_some());
            return if is_by_person { Decision::Wait(None) } else { self.lacks_predecessor() };
        }
        let Some(objects) = self.objects else { return Decision::Wait(None) };
        let (evidence, waits) = (Evidence::of(self.rollout, objects, self.now), Waits::of(self.rollout));
        let verdict = (!evidence.harmed.is_empty()).then(|| evidence.verdict());
        if verdict == Some(Verdict::Harm) {
            let why = reasons::harm(self.rollout, &evidence);
            return Decision::Return { cause: ReturnCause::Harm, why };
        }
        if self.rollout.paused.as_ref().is_some_and(|paused| paused.by.is_some()) {
            return Decision::Wait(evidence.harm_due);
        }
        let Some(step) = self.rollout.current() else { return self.next(objects, 0) };
        if let Some(lack) = verdict.and_then(|verdict| reasons::doubt(self.rollout, &evidence, verdict)) {
            return self.pause(lack, None);
        }
        if let Some(up_to) = self.further(objects, evidence.unavailable) {
            return Decision::Move { up_to };
        }
        let moved_at = last_move(step);
        let after =
            |since: Option<Timestamp>, wait: SignedDuration| since.and_then(|since| since.checked_add(wait).ok());
        if let Some(ends) = after(moved_at, waits.pause).filter(|ends| self.now < *ends) {
            return self.wait([Some(ends), evidence.harm_due]);
        }
        if !evidence.waiting.is_empty() {
            // A new process needs time for its own passes, so the time limit for passes starts at its first look or
            // later.
            let begun = after(moved_at.max(Some(self.watched_since)), waits.pause);
            return match after(begun, waits.patience).filter(|ends| self.now < *ends) {
                Some(ends) => self.wait([Some(ends), evidence.harm_due]),
                None => self.pause(reasons::passes_missing(&evidence), None),
            };
        }
        if let Some(lack) = reasons::lack(&evidence) {
            return match self.pause(lack, None) {
                Decision::Wait(_) => Decision::Wait(evidence.harm_due),
                pause => pause,
            };
        }
        if let Some(steady) = evidence.steady_from {
            return self.wait([Some(steady), evidence.harm_due]);
        }
        let max = self.max_unavailable(objects);
        if step.goal.is_some() || evidence.unavailable > max {
            return self.pause(reasons::pods_missing(evidence.unavailable, max), None);
        }
        self.next(objects, evidence.unavailable)
    }

    fn is_paused_by_operator(&self) -> bool {
        self.rollout.paused.as_ref().is_some_and(|paused| paused.by.is_none())
    }

    /// Waits until the earliest of these times. If the operator paused the rollout, resumes the rollout instead,
    /// because the reason for the pause is gone.
    fn wait(&self, due: [Option<Timestamp>; 2]) -> Decision {
        if self.is_paused_by_operator() { Decision::Resume } else { Decision::Wait(due.into_iter().flatten().min()) }
    }

    /// A person accepted the step although the evidence does not suffice. Returns the decision to move further objects
    /// of the step, or to begin the next step.
    fn accepted(&self, objects: &[Judged]) -> Decision {
        if self.rollout.current().is_some_and(|step| step.goal.is_some()) {
            self.further(objects, 0).map_or(Decision::Resume, |up_to| Decision::Move { up_to })
        } else {
            self.next(objects, 0)
        }
    }

    /// Returns the largest hash up to which the current step can move further objects now. Returns `None` if the step
    /// has moved all its objects, or if too many pods are unavailable.
    fn further(&self, objects: &[Judged], unavailable: u64) -> Option<u64> {
        let step = self.rollout.current()?;
        let goal = MovedObjects::read_hash(step.goal.as_deref()?)?;
        let moved = step.up_to.as_deref().and_then(MovedObjects::read_hash);
        room(objects, moved, goal, self.max_unavailable(objects), unavailable)
    }

    /// Begins the next step that moves another object. Ends the rollout after the last step.
    fn next(&self, objects: &[Judged], unavailable: u64) -> Decision {
        let hashes = |counts: fn(&Judged) -> bool| {
            let mut hashes: Vec<u64> = objects.iter().filter(|it| counts(it)).map(|it| it.sight.hash).collect();
            hashes.sort_unstable();
            hashes.dedup();
            hashes
        };
        let before = self.rollout.current().and_then(|step| MovedObjects::read_hash(step.up_to.as_deref()?));
        let all = hashes(|_| true);
        let is_left = all.last().is_some_and(|last| before.is_none_or(|before| before < *last));
        if !is_left {
            return Decision::Finish;
        }
        // For the size of the step, count only objects that can be evidence, because a step without such objects would
        // show nothing.
        let mut counted = hashes(|it| !it.sight.is_left && !matches!(it.shown, Shown::Excluded | Shown::NotReady));
        if counted.is_empty() {
            counted = all;
        }
        let shares = self.rollout.steps.iter().map(|step| share(&step.share));
        for (step, share) in shares.enumerate().skip(self.rollout.begun()) {
            let goal = match share {
                Share::Percent(100..) => u64::MAX,
                share => {
                    let many = share.of(u64::try_from(counted.len()).unwrap_or(u64::MAX)).max(1);
                    counted[usize::try_from(many).unwrap_or(usize::MAX).min(counted.len()) - 1]
                }
            };
            if before.is_none_or(|before| before < goal) {
                let up_to = room(objects, before, goal, self.max_unavailable(objects), unavailable);
                return match up_to.or(before) {
                    Some(up_to) => Decision::Begin { step, up_to, goal },
                    None => Decision::Wait(None),
                };
            }
        }
        Decision::Finish
    }

    /// Pauses the rollout, because the predecessor cannot serve the objects that are not moved.
    fn lacks_predecessor(&self) -> Decision {
        self.pause(reasons::predecessor_missing(), None)
    }

    /// Pauses the rollout. Leaves an existing pause unchanged if it has the same reason and the same user, and if its
    /// message still names one of the objects in `objects`, or `objects` is empty. The numbers in this message can be
    /// out of date, because changed numbers alone do not justify a write.
    fn pause(&self, Lack { reason, message, objects }: Lack, by: Option<&String>) -> Decision {
        let same = self.rollout.paused.as_ref().filter(|it| it.reason == reason);
        let names = |paused: &PolicyRolloutPause, key: &ObjectKey| paused.message.contains(&key.to_string());
        let is_told = |paused: &PolicyRolloutPause| {
            paused.by.as_ref() == by && (objects.is_empty() || objects.iter().any(|key| names(paused, key)))
        };
        if same.is_some_and(is_told) {
            return Decision::Wait(None);
        }
        Decision::Pause(PolicyRolloutPause {
            reason: reason.to_owned(),
            message,
            by: by.cloned(),
            since: same.and_then(|it| it.since.clone()).or_else(|| Some(written(self.now))),
        })
    }

    /// Returns the maximum number of pods of moved objects that are not ready at the same time.
    fn max_unavailable(&self, objects: &[Judged]) -> u64 {
        let all = objects.iter().fold(0_u64, |all, object| all.saturating_add(object.sight.pods.wanted));
        share(&self.rollout.max_unavailable).of(all).max(1)
    }
}

/// Records that a person accepted the harm so far, so that the same objects do not pause the rollout again.
pub(super) fn accept(rollout: &mut PolicyRollout, request: Option<&RolloutRequest>, now: Timestamp) {
    let is_resumed = request.is_some_and(|request| request.verb == Verb::Resume);
    // A pause for any other reason is not about harm, so the person did not accept any harm.
    if is_resumed && rollout.paused.as_ref().is_some_and(|paused| reasons::is_about_harm(&paused.reason)) {
        let until = now.checked_sub(Waits::of(rollout).patience).ok();
        rollout.accepted = until.map(written);
    }
}

/// Returns the largest hash up to which objects can move without more than `max` unavailable pods. Returns `None` if
/// not even one object can move. An object with more pods than `max` moves alone.
fn room(objects: &[Judged], moved: Option<u64>, goal: u64, max: u64, unavailable: u64) -> Option<u64> {
    let mut pods: BTreeMap<u64, u64> = BTreeMap::new();
    for Judged { sight, .. } in objects.iter().filter(|it| moved < Some(it.sight.hash) && it.sight.hash <= goal) {
        let of_hash = pods.entry(sight.hash).or_default();
        *of_hash = of_hash.saturating_add(sight.pods.wanted);
    }
    let (mut unavailable, mut up_to) = (unavailable, None);
    for (hash, many) in pods {
        let with = unavailable.saturating_add(many);
        if with > max && unavailable > 0 {
            return up_to;
        }
        (unavailable, up_to) = (with, Some(hash));
    }
    Some(goal)
}

/// Reads a share. Treats a text that is not a share as the share of all objects, so that the rollout always has a last
/// step.
fn share(text: &str) -> Share {
    let percent = text.strip_suffix('%').and_then(|percent| percent.parse().ok()).map(Share::Percent);
    percent.or_else(|| text.parse().ok().map(Share::Number)).unwrap_or(Share::Percent(100))
}

#[cfg(test)]
mod tests;
