//! Judges what each object shows about the revision of a rollout. This code is pure.
//!
//! Almost everything follows from the condition `Ready` of an object and its transition time, so the next process
//! judges the same. A *loss* is a time from which an object is not ready, or does not stay ready. This module must
//! remember three facts between looks: the first of several losses, the spec before the move, and whether an object was
//! ready before a tool replaced it. The status of the rollout stores only the first loss for the next process.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use kaos_crds::{PolicyRollout, PolicyRolloutLoss};

use super::{objects::ObjectSight, parts::Parts, waits::Waits};
use crate::{
    timestamps::{parsed, written},
    watch::ObjectKey,
};

/// The maximum number of objects whose first loss the status keeps.
const MAX_UNSTEADY: usize = 20;
/// If an object is deleted and created again within this time, it counts as the same object.
const REPLACED_WITHIN: SignedDuration = SignedDuration::from_hours(1);

/// The evidence of an object about the revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    /// No pass with the revision has ended yet, or the status does not show its result.
    Waits,
    /// The object shows nothing and does not count at all, for one of these reasons:
    ///
    /// - it is scaled to zero
    /// - it is not ready after a user changed it
    /// - it is new or was not ready at the move, and has not been ready for long enough yet
    /// - a person accepted its harm
    Excluded,
    /// The object shows nothing: it is not ready, and was not ready before.
    NotReady,
    /// The object has been ready for long enough, or since before the move.
    Good,
    /// The object became not ready at `lost`. The object is ready now, but counts as good only if it stays ready until
    /// `until`.
    Unsteady { lost: Timestamp, until: Timestamp },
    /// The object is not ready. The object was ready before this time, and has not been ready for long enough since.
    Lost(Timestamp),
}

/// An object, and its evidence about the revision.
#[derive(Debug, Clone)]
pub(super) struct Judged {
    pub(super) sight: ObjectSight,
    /// `None` if the object is not moved.
    pub(super) moved_at: Option<Timestamp>,
    pub(super) shown: Shown,
}

/// The facts that one process remembers about the objects of a rollout.
#[derive(Debug)]
pub(super) struct Watched {
    since: Timestamp,
    objects: BTreeMap<ObjectKey, Track>,
}

/// The facts that one process remembers about one object.
#[derive(Debug, Clone, Default)]
struct Track {
    moved_at: Option<Timestamp>,
    /// The hash [`ObjectSight::spec`] at the last look before the move.
    spec: u64,
    /// Whether a user changed the spec, or an annotation that policies can read, after the move.
    is_edited: bool,
    /// Whether the object was not ready for long enough before the move, and has not been ready for long enough since.
    is_unproven: bool,
    /// Whether the object was ready for long enough at one look at least.
    was_good: bool,
    /// The object's evidence at the last look.
    last: Option<Shown>,
    loss: Option<Loss>,
    /// The first look at which the object was missing.
    missing_since: Option<Timestamp>,
}

/// A period in which an object never stays ready for long enough.
#[derive(Debug, Clone, Copy)]
struct Loss {
    since: Timestamp,
    /// The last time at which the object became not ready.
    last: Option<Timestamp>,
    /// Whether the object became not ready more than once.
    is_repeated: bool,
}

impl Watched {
    /// Creates the value, with the losses that an earlier process recorded.
    pub(super) fn new(rollout: &PolicyRollout, objects: &[ObjectSight], now: Timestamp) -> Self {
        let recorded: BTreeMap<&str, Timestamp> =
            rollout.unsteady.iter().filter_map(|loss| Some((&*loss.object, parsed(Some(&loss.since))?))).collect();
        let (parts, mut tracks) = (Parts::of(rollout), BTreeMap::new());
        for object in objects {
            let moved_at = parts.moved_at(object.hash);
            // This process did not see the spec before the move, so compare the time of the last change with the time
            // of the move.
            let is_edited = moved_at.is_some_and(|moved| object.changed.is_some_and(|changed| changed >= moved));
            let loss = recorded.get(&*object.key.to_string());
            let loss = loss.map(|since| Loss { since: *since, last: None, is_repeated: true });
            let track = Track { moved_at, spec: object.spec, is_edited, loss, ..Track::default() };
            tracks.insert(object.key.clone(), track);
        }
        Self { since: now, objects: tracks }
    }

    /// Returns the time of the first look of this process.
    pub(super) fn since(&self) -> Timestamp {
        self.since
    }

    /// Judges each object at a look.
    pub(super) fn judge(&mut self, rollout: &PolicyRollout, objects: Vec<ObjectSight>, now: Timestamp) -> Vec<Judged> {
        let (parts, waits) = (Parts::of(rollout), Waits::of(rollout));
        let started = parsed(Some(&rollout.started)).unwrap_or_default();
        let accepted = parsed(rollout.accepted.as_deref());
        let judge = |sight: ObjectSight| {
            let moved_at = parts.moved_at(sight.hash);
            let new = || Track { moved_at, spec: sight.spec, ..Track::default() };
            let track = self.objects.entry(sight.key.clone()).or_insert_with(new);
            let shown = track.shown(&sight, moved_at, started, waits.steady, now);
            let is_accepted = |lost: Timestamp| accepted.is_some_and(|accepted| lost <= accepted);
            let shown = match shown {
                Shown::Lost(lost) | Shown::Unsteady { lost, .. } if is_accepted(lost) => Shown::Excluded,
                shown => shown,
            };
            Judged { sight, moved_at, shown }
        };
        let judged: Vec<Judged> = objects.into_iter().map(judge).collect();
        let seen: BTreeSet<&ObjectKey> = judged.iter().map(|it| &it.sight.key).collect();
        for (key, track) in &mut self.objects {
            track.missing_since = if seen.contains(key) { None } else { track.missing_since.or(Some(now)) };
        }
        // Keep a missing object for some time, because a tool may replace it by a new object of the same name.
        let is_replaced = |since: Timestamp| now.duration_since(since) < REPLACED_WITHIN;
        self.objects.retain(|_, track| track.missing_since.is_none_or(|since| track.was_good && is_replaced(since)));
        judged
    }

    /// Returns the repeated losses, for the status.
    ///
    /// The condition `Ready` shows only its latest change, and not when a repeated loss began.
    pub(super) fn unsteady(&self) -> Vec<PolicyRolloutLoss> {
        let repeated = |(key, track): (&ObjectKey, &Track)| {
            let is_there = track.moved_at.is_some() && track.missing_since.is_none();
            let loss = track.loss.filter(|loss| loss.is_repeated && is_there)?;
            Some((loss.since, key.to_string()))
        };
        let mut losses: Vec<(Timestamp, String)> = self.objects.iter().filter_map(repeated).collect();
        losses.sort_unstable();
        losses.truncate(MAX_UNSTEADY);
        losses.into_iter().map(|(since, object)| PolicyRolloutLoss { object, since: written(since) }).collect()
    }
}

impl Track {
    /// Returns the object's evidence at this look, and remembers the facts that later looks need.
    fn shown(
        &mut self,
        sight: &ObjectSight,
        moved_at: Option<Timestamp>,
        started: Timestamp,
        steady: SignedDuration,
        now: Timestamp,
    ) -> Shown {
        if self.moved_at.is_none() && moved_at.is_some() {
            (self.is_unproven, self.loss) = (self.last != Some(Shown::Good), None);
        }
        self.moved_at = moved_at;
        if moved_at.is_none() {
            self.spec = sight.spec;
        }
        self.is_edited |= self.spec != sight.spec;
        if moved_at.is_some() && !sight.had_pass {
            return Shown::Waits;
        }
        let shown = self.judge(sight, moved_at.unwrap_or(started), steady, now);
        self.last = Some(shown);
        self.was_good |= shown == Shown::Good;
        self.is_unproven &= shown != Shown::Good;
        if !matches!(shown, Shown::Lost(_) | Shown::Unsteady { .. }) {
            self.loss = None;
        }
        shown
    }

    /// Judges an object from its condition `Ready`. Losses count from `begin` on.
    fn judge(&mut self, sight: &ObjectSight, begin: Timestamp, steady: SignedDuration, now: Timestamp) -> Shown {
        if sight.pods.is_scaled_to_zero {
            return Shown::Excluded;
        }
        let Some(since) = sight.ready_since else { return Shown::NotReady };
        // A new object was never ready, except if it replaces an object that was ready.
        let is_new = sight.created.is_some_and(|created| created >= begin) && !self.was_good;
        if sight.is_ready {
            if since < begin || now.duration_since(since) >= steady {
                return Shown::Good;
            }
            if is_new || self.is_unproven {
                return Shown::Excluded;
            }
            let until = since.checked_add(steady).unwrap_or(Timestamp::MAX);
            let loss = self.loss.get_or_insert(Loss { since, last: None, is_repeated: false });
            return Shown::Unsteady { lost: loss.since, until };
        }
        if self.is_edited {
            return Shown::Excluded;
        }
        if is_new || self.is_unproven || since < begin {
            return Shown::NotReady;
        }
        let loss = self.loss.get_or_insert(Loss { since, last: Some(since), is_repeated: false });
        loss.is_repeated |= loss.last != Some(since) && loss.since != since;
        loss.last = Some(since);
        Shown::Lost(loss.since)
    }
}
