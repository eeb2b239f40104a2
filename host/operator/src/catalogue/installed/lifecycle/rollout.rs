//! Moves the objects of the cluster to a revision in steps, and returns the objects if the revision harms them.
//!
//! | module | content |
//! |---|---|
//! | `begin` | decides whether a candidate serves in steps, and what it waits for |
//! | `looks` | decides when to look at the objects |
//! | `objects` | reads the objects of a rollout |
//! | `parts` | the times at which the objects moved; pure |
//! | `waits` | the times that a rollout waits; pure |
//! | `watched` | judges what single objects show; pure |
//! | `evidence` | judges from all objects whether a rollout harms them; pure |
//! | `decide` | decides the next step of a rollout; pure |
//! | `reasons` | the reasons of pauses and returns; pure |
//! | `requests` | the requests of persons |
//! | `told` | the texts about a rollout in the status |
//! | `unloaded` | the rollout of a revision that is not loaded |

mod begin;
mod decide;
mod evidence;
mod looks;
mod objects;
mod parts;
mod reasons;
mod requests;
mod told;
mod unloaded;
mod waits;
mod watched;

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use kaos_crds::{PolicyRollout, PolicySource, RevisionState};
use tokio::time::Instant;

pub(super) use self::looks::RolloutLooks;
pub(crate) use self::requests::{Verb as RolloutVerb, next_request};
pub(super) use self::unloaded::serves_again;
use self::{
    decide::{Decision, ReturnCause, RolloutFacts, accept},
    looks::look,
    parts::record_part,
    requests::{RolloutRequest, request},
    watched::{Judged, Watched},
};
use super::{Found, LOOK_AGAIN, Lifecycle, StepError, Transition, plan::ServiceFailure};
use crate::{
    catalogue::{
        MovedObjects, RolloutStage,
        installed::{
            observed::{OLD_DEFINITION, ROLLOUT_PAUSED},
            revision_set::moved_objects,
        },
    },
    metrics::RolloutState,
    timestamps::written,
};

/// The status reason of a revision whose rollout is running.
pub(super) const ROLLING_OUT: &str = "RollingOut";
/// The status reason of a revision whose rollout reached all objects.
const ROLLED_OUT: &str = "RolledOut";
/// The status reason of a quarantined revision whose rollout returned all objects.
pub(super) const RETURNED: &str = "Returned";

/// The result of a round over all rollouts.
pub(super) struct RolledOut {
    /// The delay until the next look. `None` without a rollout.
    pub(super) wait: Option<Duration>,
    /// The revisions whose objects return to their predecessors.
    pub(super) returned: BTreeMap<String, ServiceFailure>,
    /// The first error.
    pub(super) done: Result<(), StepError>,
}

impl Lifecycle {
    /// Takes the next step of each rollout. An error in one rollout does not delay other rollouts.
    pub(super) async fn roll_out(&mut self, found: &[Found]) -> RolledOut {
        let mut rolled = RolledOut { wait: None, returned: BTreeMap::new(), done: Ok(()) };
        let open = self.records.all().iter().filter(|(name, revision)| {
            let is_open = revision.status.as_ref().is_some_and(|status| status.open_rollout().is_some());
            is_open && self.revisions.entries.contains_key(*name)
        });
        let open: Vec<String> = open.map(|(name, _)| name.clone()).collect();
        self.rollouts.retain(|name, _| open.contains(name));
        let mut states = Vec::new();
        for name in &open {
            self.load_yielding(name, found).await;
            let is_loaded = self.revisions.entries.get(name).is_some_and(|entry| entry.content.is_loaded());
            let looked =
                if is_loaded { self.look_at(name).await } else { Ok((LOOK_AGAIN, self.step_unloaded(name).await)) };
            let wait = match looked {
                Ok((wait, None)) => wait,
                Ok((wait, Some(failure))) => {
                    rolled.returned.insert(name.clone(), failure);
                    wait
                }
                Err(error) => {
                    rolled.done = rolled.done.and(Err(error));
                    LOOK_AGAIN
                }
            };
            rolled.wait = Some(rolled.wait.map_or(wait, |least| least.min(wait)));
            states.extend(self.state_for_metrics(name));
        }
        self.tools.metrics.rollouts(&states);
        let recorded = self.records.all().values().map(|revision| package_of(&revision.spec.source));
        let packages = recorded.chain(found.iter().map(|found| package_of(&found.source))).collect();
        self.tools.metrics.keep_rollouts_of(&packages);
        rolled
    }

    /// Takes the next step of a rollout if a look at its objects is due. Returns the delay until the next look and, if
    /// all objects return, the reason.
    async fn look_at(&mut self, name: &str) -> Result<(Duration, Option<ServiceFailure>), StepError> {
        let swap = self.tools.catalogue.load().map_or(0, |snapshot| snapshot.revision);
        let status = self.records.status(name);
        let rollout = status.rollout.unwrap_or_default();
        let is_requested = self.records.get(name).is_some_and(|revision| request(revision, &rollout).is_some());
        let mut looks = self.rollouts.remove(name).unwrap_or_default();
        let wait = looks.wait(swap, Instant::now()).filter(|_| !is_requested);
        let done = match wait {
            Some(wait) => Ok((wait, None)),
            None => self.look_now(name, swap, &mut looks).await,
        };
        self.rollouts.insert(name.to_owned(), looks);
        done
    }

    async fn look_now(
        &mut self,
        name: &str,
        swap: u64,
        looks: &mut RolloutLooks,
    ) -> Result<(Duration, Option<ServiceFailure>), StepError> {
        // Mark the next look as due until this look has succeeded, so that the operator repeats a failed step or
        // return.
        looks.repeat();
        let (due, failure) = self.step_of(name, looks).await?;
        let most = self.records.status(name).rollout.map_or(LOOK_AGAIN, |rollout| look(&rollout));
        let wait = due.map_or(most, |due| self.until(due).min(most));
        if failure.is_none() && looks.watched.is_some() {
            looks.looked(swap, Instant::now(), wait);
        }
        Ok((wait, failure))
    }

    fn until(&self, due: Timestamp) -> Duration {
        let left = due.duration_since(self.tools.clock.now());
        // The recorded times have whole seconds, so look a second later.
        Duration::try_from(left).unwrap_or_default() + Duration::from_secs(1)
    }

    /// Takes the next step of a rollout. Returns the time of the next look and, if all objects return, the reason.
    async fn step_of(
        &mut self,
        name: &str,
        looks: &mut RolloutLooks,
    ) -> Result<(Option<Timestamp>, Option<ServiceFailure>), StepError> {
        let Some(revision) = self.records.get(name) else { return Ok((None, None)) };
        let status = revision.status.clone().unwrap_or_default();
        let (Some(mut rollout), Some(stage)) = (status.rollout.clone(), self.revisions.stage(name)) else {
            return Ok((None, None));
        };
        let request = request(revision, &rollout);
        let objects = self.judged(name, (&stage, &rollout), looks).await;
        let now = self.tools.clock.now();
        let facts = RolloutFacts {
            rollout: &rollout,
            objects: objects.as_deref(),
            can_yield: stage.can_yield,
            request: request.clone(),
            watched_since: looks.watched.as_ref().map_or(now, Watched::since),
            now,
        };
        let decision = if self.records.has_rollouts() {
            facts.decide()
        } else {
            Decision::Return { cause: ReturnCause::OldDefinition, why: OLD_DEFINITION.to_owned() }
        };
        accept(&mut rollout, request.as_ref(), now);
        let due = match decision {
            Decision::Wait(due) => due,
            Decision::Return { cause, why } => {
                looks.cause = Some(cause);
                return Ok((None, Some(ServiceFailure { reason: RETURNED, why: told::returned(&rollout, &why) })));
            }
            ref decision => {
                advance(&mut rollout, decision, now);
                None
            }
        };
        let by = request.map(|RolloutRequest { by, .. }| by);
        rollout.requests += i64::from(by.is_some());
        if let Some(objects) = &objects {
            let up_to = rollout.current().and_then(|step| MovedObjects::read_hash(step.up_to.as_deref()?));
            // Count the objects for which only the predecessor answered only if there are no other objects.
            let is_left = |it: &&Judged| it.sight.is_left;
            let counts_left = objects.iter().all(|it| is_left(&it));
            let counted = || objects.iter().filter(|it| counts_left || !is_left(it));
            let moved = counted().filter(|it| !rollout.is_open() || up_to >= Some(it.sight.hash)).count();
            rollout.moved = i64::try_from(moved).unwrap_or(i64::MAX);
            rollout.objects = i64::try_from(counted().count()).unwrap_or(i64::MAX);
        }
        if let Some(watched) = &looks.watched {
            rollout.unsteady = if rollout.is_open() { watched.unsteady() } else { Vec::new() };
        }
        rollout.summary = told::summary(&rollout);
        if Some(&rollout) == status.rollout.as_ref() {
            return Ok((due, None));
        }
        self.record_rollout(name, rollout, &decision, by.as_deref()).await?;
        Ok((due, None))
    }

    /// Writes the state of a rollout into the status, and then puts this state into effect.
    async fn record_rollout(
        &mut self,
        name: &str,
        rollout: PolicyRollout,
        decision: &Decision,
        by: Option<&str>,
    ) -> Result<(), StepError> {
        let reason = match (rollout.is_open(), &rollout.paused) {
            (false, _) => ROLLED_OUT,
            (true, Some(_)) => ROLLOUT_PAUSED,
            (true, None) => ROLLING_OUT,
        };
        let had_reason = self.records.status(name).reason.as_deref() == Some(reason);
        let message = told::message(&rollout, self.records.status(name).approved.as_ref(), by);
        let (summary, ends) = (rollout.summary.clone(), !rollout.is_open());
        let transition = Transition::new(RevisionState::Active, reason, message);
        if !self.enter(name, transition, |status| status.rollout = Some(rollout)).await? {
            return Ok(());
        }
        let moves = matches!(decision, Decision::Begin { .. } | Decision::Finish);
        if moves || !had_reason {
            tracing::info!(revision = name, reason, "{summary}");
        }
        if had_reason
            && matches!(decision, Decision::Begin { .. })
            && let Some(revision) = self.records.get(name)
        {
            self.events.tell(revision).await;
        }
        let moved = moved_objects(&self.records.status(name));
        if let Some(entry) = self.revisions.entries.get_mut(name)
            && entry.stage != moved
        {
            entry.stage = moved;
            self.swap_again();
        }
        if ends {
            self.wake_rollouts();
        }
        Ok(())
    }

    /// Judges the objects that a rollout concerns. Returns `None` while the operator does not see all objects, or
    /// before a swap puts the rollout into effect.
    async fn judged(
        &self,
        name: &str,
        (stage, rollout): (&RolloutStage, &PolicyRollout),
        looks: &mut RolloutLooks,
    ) -> Option<Vec<Judged>> {
        let snapshot = self.tools.catalogue.load()?;
        let is_swapped = snapshot.staging().stages.iter().any(|it| *it.revision == *name && it.moved == stage.moved);
        if !is_swapped || !self.objects_are_seen() {
            return None;
        }
        let objects = looks.cache.look(&self.tools.catalogue, &self.tools.watch, (name, stage)).await;
        let now = self.tools.clock.now();
        let watched = looks.watched.get_or_insert_with(|| Watched::new(rollout, &objects, now));
        Some(watched.judge(rollout, objects, now))
    }

    /// Loads the predecessor of a revision that is rolled out, if an earlier attempt failed.
    async fn load_yielding(&mut self, name: &str, found: &[Found]) {
        let Some(before) = self.revisions.entries.get(name).and_then(|entry| entry.predecessor.clone()) else { return };
        let is_loaded = |this: &Self| this.revisions.entries.get(&before).is_some_and(|it| it.content.is_loaded());
        let is_due = self.due.get(&before).is_none_or(|due| Instant::now() >= *due);
        let Some(revision) = self.records.get(&before).cloned() else { return };
        // If the predecessor does not yield, an earlier attempt showed that the operator cannot load it.
        let may_load = revision.status.as_ref().is_some_and(|status| status.state == RevisionState::Yielding);
        if is_loaded(self) {
            self.yields_again(&before, name).await;
            return;
        }
        // If a tenant's policy is in `loading`, the operator loads its predecessors there, before the policy itself.
        if !is_due || !may_load || self.loading.contains_key(name) || !self.may_yield_again(&before) {
            return;
        }
        if self.is_local_policy(&revision) && !self.compile(&before, false, found).await {
            // The end of the compilation starts a new round.
            return;
        }
        let loaded = self.reload(&revision, found).await;
        if is_loaded(self) {
            self.due.remove(&before);
            self.swap_again();
            self.yields_again(&before, name).await;
        } else {
            if let Err(error) = loaded {
                tracing::warn!(%error, revision = before, "the predecessor of a rollout cannot be loaded");
            }
            self.due.insert(before, Instant::now() + LOOK_AGAIN);
        }
    }

    /// Counts a rollout that returned all objects, in the metrics.
    pub(super) fn count_return(&self, name: &str, reason: &str) {
        if let Some(revision) = self.records.get(name).filter(|_| reason == RETURNED) {
            let cause = self.rollouts.get(name).and_then(|looks| looks.cause).unwrap_or(ReturnCause::Harm);
            self.tools.metrics.rollout_returned(&package_of(&revision.spec.source), cause.name());
        }
    }

    fn state_for_metrics(&self, name: &str) -> Option<RolloutState> {
        let revision = self.records.get(name)?;
        let rollout = revision.status.as_ref()?.open_rollout()?;
        let number = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        Some(RolloutState {
            package: package_of(&revision.spec.source),
            step: number(rollout.begun()),
            moved: rollout.moved,
            left: (rollout.objects - rollout.moved).max(0),
            paused: rollout.paused.as_ref().map(|paused| paused.reason.clone()),
        })
    }
}

/// Returns the name of a package in the metrics.
fn package_of(PolicySource { namespace, config_map }: &PolicySource) -> String {
    format!("{namespace}/{config_map}")
}

/// Changes the recorded state of a rollout according to a decision.
fn advance(rollout: &mut PolicyRollout, decision: &Decision, now: Timestamp) {
    match decision {
        Decision::Begin { step, up_to, goal } => {
            let begun = rollout.begun();
            // A skipped step moves no further object, so it begins together with the next step.
            for step in rollout.steps.iter_mut().take(step + 1).skip(begun) {
                (step.since, step.up_to) = (Some(written(now)), Some(format!("{up_to:016x}")));
            }
            if let Some(step) = rollout.steps.get_mut(*step) {
                step.goal = (up_to != goal).then(|| format!("{goal:016x}"));
            }
            rollout.paused = None;
        }
        Decision::Move { up_to } => {
            let begun = rollout.begun();
            if let Some(step) = begun.checked_sub(1).and_then(|at| rollout.steps.get_mut(at)) {
                record_part(step, *up_to, now);
            }
            rollout.paused = None;
        }
        Decision::Pause(pause) => rollout.paused = Some(pause.clone()),
        Decision::Resume => rollout.paused = None,
        Decision::Finish => (rollout.ended, rollout.paused) = (Some(written(now)), None),
        Decision::Wait(_) | Decision::Return { .. } => {}
    }
}

/// Ends the rollout of a revision that stops serving. The parameter `how` is the first word of the rollout's summary.
pub(super) fn end_rollout(rollout: &mut Option<PolicyRollout>, how: &str, now: Timestamp) {
    if let Some(rollout) = rollout.as_mut().filter(|rollout| rollout.is_open()) {
        rollout.ended = Some(written(now));
        rollout.summary = format!("{how} at {}", told::step(rollout));
    }
}
