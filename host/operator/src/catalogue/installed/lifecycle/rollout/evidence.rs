//! Judges whether a rollout harms its objects. This code is pure.
//!
//! The evidence is the condition `Ready` of the objects, with its transition time. The module `watched` judges each
//! single object. This module counts the judged objects, and compares the moved objects with objects that the current
//! step has not moved.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use kaos_crds::PolicyRollout;

use super::{
    waits::Waits,
    watched::{Judged, Shown},
};
use crate::{timestamps::parsed, watch::ObjectKey};

/// For a comparison, there must be at least one unmoved object for each group of this many moved objects.
const ENOUGH_OTHERS: usize = 4;
/// The rollout returns only if at least this many objects are harmed, unless it has moved only one object.
const ENOUGH_HARMED: usize = 2;

/// A moved object that is not ready, or that does not stay ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Harmed {
    pub(super) key: ObjectKey,
    /// The time at which the object first became not ready.
    pub(super) since: Timestamp,
    /// The time from which the loss of readiness counts as harm.
    pub(super) lasting_from: Timestamp,
    /// Whether the object is ready again, but not yet for long enough to count as ready.
    pub(super) is_unsteady: bool,
}

/// A number of objects, and how many of them became not ready.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) all: usize,
    pub(super) harmed: usize,
}

/// The result of a comparison of harmed objects with other objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The revision harms the objects.
    Harm,
    /// The other objects fail too, so the revision need not be the cause.
    TroubleOfAll,
    /// There are no other objects.
    NothingToCompare,
    /// The users of the harmed objects can have caused the harm. Only one of several objects is harmed, or the rollout
    /// moved objects of several namespaces and all harmed objects are in one of them.
    FewHarmed,
}

/// The evidence for and against the revision of a rollout.
#[derive(Debug, Clone, Default)]
pub(super) struct Evidence {
    /// The number of moved objects.
    pub(super) moved: usize,
    /// The number of moved objects that are no evidence, neither for nor against the revision.
    pub(super) excluded: usize,
    /// The number of moved objects that are evidence for or against the revision.
    counted: usize,
    /// The moved objects that wait for a pass with the revision.
    pub(super) waiting: Vec<ObjectKey>,
    /// The number of moved objects that are ready.
    pub(super) ready: usize,
    /// The time at which all ready objects have been ready for long enough.
    pub(super) steady_from: Option<Timestamp>,
    /// The number of unavailable pods of moved objects: all pods of objects that wait for a pass or became not ready,
    /// and the missing pods of ready objects.
    pub(super) unavailable: u64,
    /// The moved objects that became not ready and are not ready now. The object with the earliest loss comes first.
    pub(super) lost: Vec<Harmed>,
    /// The moved objects whose loss counts as harm now, because the time `lasting_from` has passed. The object with the
    /// earliest loss comes first.
    pub(super) harmed: Vec<Harmed>,
    /// The time at which the next loss counts as harm, if nothing changes until then.
    pub(super) harm_due: Option<Timestamp>,
    /// The moved objects that the verdict is about. The operator compares them with the objects in `others`.
    suspects: Group,
    pub(super) others: Group,
    /// The namespaces of the moved objects that are evidence.
    namespaces: BTreeSet<String>,
}

impl Evidence {
    pub(super) fn of(rollout: &PolicyRollout, objects: &[Judged], now: Timestamp) -> Self {
        let waits = Waits::of(rollout);
        let step_since = rollout.current().and_then(|step| parsed(step.since.as_deref())).unwrap_or(Timestamp::MIN);
        let mut evidence = Self::default();
        let [mut unmoved, mut earlier, mut last] = [Group::default(); 3];
        for Judged { sight, moved_at, shown } in objects {
            if moved_at.is_some() {
                let unavailable = match shown {
                    Shown::Waits | Shown::Lost(_) => sight.pods.wanted,
                    Shown::Good | Shown::Unsteady { .. } => sight.pods.missing,
                    Shown::Excluded | Shown::NotReady => 0,
                };
                evidence.unavailable = evidence.unavailable.saturating_add(unavailable);
            }
            // Only the predecessor answered for the object, so it shows nothing about the revision.
            if sight.is_left {
                continue;
            }
            let harmed = moved_at.and_then(|_| harmed(&sight.key, *shown, waits));
            let is_harmed = harmed.as_ref().is_some_and(|it| now >= it.lasting_from);
            let is_lost = matches!(shown, Shown::Lost(_)) || is_harmed;
            let group = match moved_at {
                None => &mut unmoved,
                // The object moved in an earlier step, and the revision did not harm it in that step.
                Some(moved) if *moved < step_since && harmed.as_ref().is_none_or(|it| it.since >= step_since) => {
                    &mut earlier
                }
                Some(_) => &mut last,
            };
            let counts = matches!(shown, Shown::Good | Shown::Unsteady { .. } | Shown::Lost(_));
            group.all += usize::from(counts);
            group.harmed += usize::from(is_lost);
            if moved_at.is_none() {
                continue;
            }
            evidence.moved += 1;
            evidence.excluded += usize::from(*shown == Shown::Excluded);
            if counts {
                evidence.namespaces.insert(sight.key.namespace.clone());
            }
            match shown {
                Shown::Waits => evidence.waiting.push(sight.key.clone()),
                Shown::Good | Shown::Unsteady { .. } => evidence.ready += 1,
                Shown::Lost(_) | Shown::Excluded | Shown::NotReady => {}
            }
            if let Shown::Unsteady { until, .. } = shown {
                evidence.steady_from = evidence.steady_from.max(Some(*until));
            }
            let Some(harmed) = harmed else { continue };
            if is_harmed {
                evidence.harmed.push(harmed.clone());
            } else {
                let due = evidence.harm_due.map_or(harmed.lasting_from, |due| due.min(harmed.lasting_from));
                evidence.harm_due = Some(due);
            }
            if !harmed.is_unsteady {
                evidence.lost.push(harmed);
            }
        }
        // If there are enough unmoved objects, compare all moved objects with them. Otherwise compare only the objects
        // of this step, with the unmoved objects and the objects of earlier steps together.
        let judged = earlier.all + last.all;
        evidence.counted = judged;
        let is_enough = unmoved.all > 0 && unmoved.all * ENOUGH_OTHERS >= judged;
        (evidence.suspects, evidence.others) =
            if is_enough { (earlier + last, unmoved) } else { (last, unmoved + earlier) };
        for list in [&mut evidence.lost, &mut evidence.harmed] {
            list.sort_by(|one, other| (one.since, &one.key).cmp(&(other.since, &other.key)));
        }
        evidence
    }

    /// Judges whether the revision is the cause of the harm. The caller asks only if objects are harmed.
    pub(super) fn verdict(&self) -> Verdict {
        let Self { suspects, others, .. } = self;
        if others.all == 0 {
            return Verdict::NothingToCompare;
        }
        if others.harmed > 0 && others.harmed * suspects.all >= suspects.harmed * others.all {
            return Verdict::TroubleOfAll;
        }
        let namespaces: BTreeSet<&str> = self.harmed.iter().map(|it| &*it.key.namespace).collect();
        let is_shared = self.harmed.len() >= ENOUGH_HARMED && (namespaces.len() > 1 || self.namespaces.len() == 1);
        let is_only_one = self.harmed.len() == 1 && self.counted == 1;
        if is_shared || is_only_one { Verdict::Harm } else { Verdict::FewHarmed }
    }

    /// Returns the number of moved objects, without the excluded objects, which are no evidence.
    pub(super) fn countable(&self) -> usize {
        self.moved - self.excluded
    }
}

impl std::ops::Add for Group {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { all: self.all + other.all, harmed: self.harmed + other.harmed }
    }
}

/// Returns since when an object is not ready, and when this loss counts as harm: after the time `patience`. If the
/// object is ready again, the loss counts only after the additional time `steady`, in which the object can show that it
/// stays ready.
fn harmed(key: &ObjectKey, shown: Shown, waits: Waits) -> Option<Harmed> {
    let (since, extra) = match shown {
        Shown::Lost(since) => (since, SignedDuration::ZERO),
        Shown::Unsteady { lost, .. } => (lost, waits.steady),
        _ => return None,
    };
    let lasting_from = waits.patience.checked_add(extra).and_then(|wait| since.checked_add(wait).ok());
    Some(Harmed {
        key: key.clone(),
        since,
        lasting_from: lasting_from.unwrap_or(Timestamp::MAX),
        is_unsteady: !extra.is_zero(),
    })
}
