//! Decides the next step of a rollout, from its recorded state, the objects, the time, and the request of a person. This
//! code is pure, and stores nothing: a process can end at any time, and the next process decides the same.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use kaos_crds::{PolicyRollout, PolicyRolloutPause};
use kaos_policy::rollout::{Share, Wait};

use super::{
    evidence::{Evidence, ObjectSight},
    requests::{RolloutRequest, Verb},
};
use crate::{catalogue::MovedObjects, timestamps::parsed, watch::ObjectKey};

/// The reason of a pause by a person.
pub(super) const PAUSED_BY_PERSON: &str = "PausedByPerson";
/// The maximum number of objects that a message names.
const NAMED: usize = 3;

/// The facts from which the operator decides about an open rollout.
pub(super) struct RolloutFacts<'a> {
    pub(super) rollout: &'a PolicyRollout,
    /// The objects that the rollout concerns. `None` while the operator does not see all of them.
    pub(super) objects: Option<&'a [ObjectSight]>,
    /// Whether the predecessor can serve the objects that are not moved.
    pub(super) can_yield: bool,
    pub(super) request: Option<RolloutRequest>,
    pub(super) now: Timestamp,
}

/// The next step of a rollout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Decision {
    /// Nothing is due. The value is the time at which to decide again even if nothing changes.
    Wait(Option<Timestamp>),
    /// Begins the step with this index, and moves the objects with hashes up to `up_to`. At the end of the step, the
    /// objects with hashes up to `goal` are moved.
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
        why: String,
    },
}

impl RolloutFacts<'_> {
    /// Returns the next step.
    pub(super) fn decide(&self) -> Decision {
        match &self.request {
            Some(RolloutRequest { verb: Verb::Pause, by }) => {
                return self.pause(PAUSED_BY_PERSON, format!("{by} paused the rollout"), Some(by));
            }
            Some(RolloutRequest { verb: Verb::Promote, .. }) => return Decision::Finish,
            // Without the revision that served before, weaker policies would take over all objects.
            Some(RolloutRequest { verb: Verb::Return, .. }) if !self.can_yield => return self.lacks_predecessor(),
            Some(RolloutRequest { verb: Verb::Return, by }) => {
                return Decision::Return { why: format!("{by} returned to the revision that served before") };
            }
            Some(RolloutRequest { verb: Verb::Resume, .. }) => {
                let by_operator = self.rollout.paused.as_ref().is_some_and(|paused| paused.by.is_none());
                return match self.objects.filter(|_| by_operator && self.can_yield) {
                    Some(objects) => self.accepted(objects),
                    None => Decision::Resume,
                };
            }
            None => {}
        }
        if !self.can_yield {
            return self.lacks_predecessor();
        }
        let Some(objects) = self.objects else { return Decision::Wait(None) };
        let evidence = Evidence::of(self.rollout, objects);
        let lasting = evidence.lasting(self.patience(), self.now);
        if !lasting.is_empty() && !evidence.is_trouble_of_all() {
            return Decision::Return { why: self.told_harm(lasting, &evidence) };
        }
        let harm_due =
            evidence.harmed.get(lasting.len()).and_then(|(_, since)| since.checked_add(self.patience()).ok());
        if self.rollout.paused.as_ref().is_some_and(|paused| paused.by.is_some()) {
            return Decision::Wait(harm_due);
        }
        let Some(step) = self.rollout.current() else { return self.next(objects, &evidence) };
        let moved_at = step.moved_at.as_deref().or(step.since.as_deref());
        let pause_ends = parsed(moved_at).and_then(|since| since.checked_add(self.wait_of_step()).ok());
        if !lasting.is_empty() {
            return self.pause("ClusterTrouble", told_trouble(&evidence), None);
        }
        if let Some(up_to) = self.further(objects, &evidence) {
            return Decision::Move { up_to };
        }
        if let Some(ends) = pause_ends.filter(|ends| self.now < *ends) {
            return Decision::Wait([Some(ends), harm_due].into_iter().flatten().min());
        }
        if evidence.waiting > 0 {
            return Decision::Wait(harm_due);
        }
        match lack(&evidence) {
            Some((reason, message)) => match self.pause(reason, message, None) {
                Decision::Wait(_) => Decision::Wait(harm_due),
                pause => pause,
            },
            None => self.next(objects, &evidence),
        }
    }

    /// Returns what follows when a person accepts a step without evidence: further objects of the step, or the next
    /// step.
    fn accepted(&self, objects: &[ObjectSight]) -> Decision {
        let evidence = Evidence::of(self.rollout, objects);
        if self.rollout.current().is_some_and(|step| step.goal.is_some()) {
            self.further(objects, &evidence).map_or(Decision::Resume, |up_to| Decision::Move { up_to })
        } else {
            self.next(objects, &evidence)
        }
    }

    /// Returns the largest hash up to which the current step can move further objects now. Returns `None` if the step has
    /// moved all its objects, or if too many pods are unavailable.
    fn further(&self, objects: &[ObjectSight], evidence: &Evidence) -> Option<u64> {
        let step = self.rollout.current()?;
        let goal = MovedObjects::read_hash(step.goal.as_deref()?)?;
        let moved = step.up_to.as_deref().and_then(MovedObjects::read_hash);
        room(objects, moved, goal, self.max_unavailable(objects), evidence.unavailable)
    }

    /// Begins the next step that moves another object. Ends the rollout after the last step.
    fn next(&self, objects: &[ObjectSight], evidence: &Evidence) -> Decision {
        let mut hashes: Vec<u64> = objects.iter().map(|object| object.hash).collect();
        hashes.sort_unstable();
        hashes.dedup();
        let begun = self.rollout.begun();
        let before = self.rollout.current().and_then(|step| MovedObjects::read_hash(step.up_to.as_deref()?));
        let is_left = hashes.last().is_some_and(|last| before.is_none_or(|before| before < *last));
        if !is_left {
            return Decision::Finish;
        }
        for (step, PolicyRolloutShare(share)) in
            self.rollout.steps.iter().map(|step| PolicyRolloutShare::parse(&step.share)).enumerate().skip(begun)
        {
            let goal = match share {
                Share::Percent(100..) => u64::MAX,
                share => {
                    let all = u64::try_from(hashes.len()).unwrap_or(u64::MAX);
                    let many = usize::try_from(share.of(all).max(1)).unwrap_or(usize::MAX).min(hashes.len());
                    hashes[many - 1]
                }
            };
            if before.is_none_or(|before| before < goal) {
                let up_to = room(objects, before, goal, self.max_unavailable(objects), evidence.unavailable);
                return match up_to.or(before) {
                    Some(up_to) => Decision::Begin { step, up_to, goal },
                    None => Decision::Wait(None),
                };
            }
        }
        Decision::Finish
    }

    /// Pauses the rollout because no revision can serve the objects that are not moved.
    fn lacks_predecessor(&self) -> Decision {
        let message = "the operator cannot load the revision that serves the objects that are not moved, so these \
                       objects wait and keep their children, and no object can return: install the package that served \
                       before again, or run `policy promote`";
        self.pause("PredecessorMissing", message.to_owned(), None)
    }

    /// Pauses the rollout. Does nothing if the rollout is paused for the same reason, so that its pause has one start.
    fn pause(&self, reason: &str, message: String, by: Option<&String>) -> Decision {
        let paused = self.rollout.paused.as_ref();
        let is_known = paused.is_some_and(|it| it.reason == reason && it.message == message && it.by.as_ref() == by);
        if is_known {
            return Decision::Wait(None);
        }
        let since = paused.filter(|it| it.reason == reason).and_then(|it| it.since.clone());
        Decision::Pause(PolicyRolloutPause {
            reason: reason.to_owned(),
            message,
            by: by.cloned(),
            since: since.or_else(|| Some(crate::timestamps::written(self.now))),
        })
    }

    fn patience(&self) -> SignedDuration {
        duration(&self.rollout.patience)
    }

    /// Returns the maximum number of pods of moved objects that are not ready at the same time.
    fn max_unavailable(&self, objects: &[ObjectSight]) -> u64 {
        let all = objects.iter().fold(0_u64, |all, object| all.saturating_add(object.pods));
        let PolicyRolloutShare(share) = PolicyRolloutShare::parse(&self.rollout.max_unavailable);
        share.of(all).max(1)
    }

    fn wait_of_step(&self) -> SignedDuration {
        duration(&self.rollout.pause)
    }

    fn told_harm(&self, lasting: &[(ObjectKey, Timestamp)], evidence: &Evidence) -> String {
        let (others_harmed, others) = evidence.others();
        let names: Vec<String> = lasting.iter().take(NAMED).map(|(key, _)| key.to_string()).collect();
        let more = if lasting.len() > NAMED { ", …" } else { "" };
        format!(
            "{} of {} moved objects became not ready after the move, and stayed not ready for {} ({}{more}); of the \
             {others} other objects, {others_harmed} became not ready",
            lasting.len(),
            evidence.moved,
            self.rollout.patience,
            names.join(", "),
        )
    }
}

/// Returns the largest hash up to which objects can move, of the objects with hashes above `moved` and up to `goal`.
/// Their pods and the `unavailable` pods are at most `max` together. If no pod is unavailable, at least one object moves:
/// an object with more pods than `max` would never move otherwise. Returns `None` if no object can move.
fn room(objects: &[ObjectSight], moved: Option<u64>, goal: u64, max: u64, unavailable: u64) -> Option<u64> {
    // Objects with the same hash move together.
    let mut pods: BTreeMap<u64, u64> = BTreeMap::new();
    for object in objects.iter().filter(|object| moved < Some(object.hash) && object.hash <= goal) {
        let of_hash = pods.entry(object.hash).or_default();
        *of_hash = of_hash.saturating_add(object.pods);
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

/// A share as the status contains it.
struct PolicyRolloutShare(Share);

impl PolicyRolloutShare {
    /// Reads a share. Treats an unreadable share as all objects, because the last step must exist.
    fn parse(text: &str) -> Self {
        let percent = text.strip_suffix('%').and_then(|percent| percent.parse().ok()).map(Share::Percent);
        Self(percent.or_else(|| text.parse().ok().map(Share::Number)).unwrap_or(Share::Percent(100)))
    }
}

fn duration(text: &str) -> SignedDuration {
    let wait: Option<Wait> = text.parse().ok();
    wait.and_then(|Wait(wait)| SignedDuration::try_from(wait).ok()).unwrap_or(SignedDuration::MAX)
}

/// Returns why the evidence does not suffice for the next step, as a reason and a message. Returns `None` if the evidence
/// suffices, or if no object is moved.
fn lack(evidence: &Evidence) -> Option<(&'static str, String)> {
    let Evidence { moved, ready, harmed, .. } = evidence;
    let moved_objects = format!("{moved} moved object{}", if *moved == 1 { "" } else { "s" });
    if let Some((first, _)) = harmed.first() {
        let message = format!("not ready since the move: {} of {moved_objects}, for example {first}", harmed.len());
        return Some(("SlowToStart", message));
    }
    if *moved > 0 && *ready == 0 {
        return Some(("NothingWasReady", format!("none of {moved_objects} is ready, and none was ready before")));
    }
    (ready * 2 < *moved).then(|| {
        (
            "TooFewReady",
            format!("ready: only {ready} of {moved_objects}; the others were not ready before the move either"),
        )
    })
}

fn told_trouble(evidence: &Evidence) -> String {
    let (others_harmed, others) = evidence.others();
    format!(
        "{} of {} moved objects are not ready, but also {others_harmed} of {others} other objects became not ready: the \
         package is probably not the cause, so the rollout goes on when the moved objects are ready",
        evidence.harmed.len(),
        evidence.moved,
    )
}

#[cfg(test)]
mod tests;
