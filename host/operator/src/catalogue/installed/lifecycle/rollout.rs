//! Moves the objects of the cluster to a revision in steps, and returns them if they suffer.
//!
//! | module | content |
//! |---|---|
//! | `begin` | decides whether a candidate serves in steps, and what it waits for |
//! | `decide` | decides the next step of a rollout; pure |
//! | `evidence` | judges from the objects whether a rollout harms them; pure |
//! | `requests` | the requests of persons |
//! | `told` | the texts about a rollout in the status |
//! | `unloaded` | the rollout of a revision that is not loaded |

mod begin;
mod decide;
mod evidence;
mod requests;
mod told;
mod unloaded;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use kaos_crds::{PolicyRollout, PolicySource, RevisionState};
use kaos_policy::{contract::ResourceType, rollout::Wait};
use serde_json::Value;
use tokio::time::Instant;

pub(crate) use self::requests::{Verb as RolloutVerb, next_request};
pub(super) use self::unloaded::serves_again;
use self::{
    decide::{Decision, RolloutFacts},
    evidence::ObjectSight,
    requests::{RolloutRequest, request},
};
use super::{Found, LOOK_AGAIN, Lifecycle, StepError, Transition, plan::ServiceFailure};
use crate::{
    catalogue::{
        MovedObjects, Predecessors, RolloutStage, Snapshot,
        installed::{
            observed::{OLD_DEFINITION, ROLLOUT_PAUSED},
            revision_set::moved_objects,
        },
    },
    metrics::RolloutState,
    pods::pods,
    status::conditions::{READY, condition, is_true},
    timestamps::{parsed, written},
    watch::Seen,
};

/// The status reason of a revision whose rollout goes on.
pub(super) const ROLLING_OUT: &str = "RollingOut";
/// The status reason of a revision whose rollout reached all objects.
const ROLLED_OUT: &str = "RolledOut";
/// The status reason of a quarantined revision whose rollout returned all objects.
pub(super) const RETURNED: &str = "Returned";
/// The maximum time between two looks at the objects of a rollout. A change of `Ready` wakes nobody.
const LOOK: Duration = Duration::from_secs(10);
/// The minimum time between two looks, for rollouts with short steps.
const SHORT_LOOK: Duration = Duration::from_secs(2);
/// The number of looks in each step, except for the bounds above.
const LOOKS: u32 = 10;

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
    /// Takes the next step of each rollout. A rollout that fails does not delay the others.
    pub(super) async fn roll_out(&mut self, found: &[Found]) -> RolledOut {
        let mut rolled = RolledOut { wait: None, returned: BTreeMap::new(), done: Ok(()) };
        let open = self.records.all().iter().filter(|(name, revision)| {
            let is_open = revision.status.as_ref().is_some_and(|status| status.open_rollout().is_some());
            is_open && self.revisions.entries.contains_key(*name)
        });
        let open: Vec<String> = open.map(|(name, _)| name.clone()).collect();
        let mut states = Vec::new();
        for name in &open {
            self.load_yielding(name, found).await;
            let is_loaded = self.revisions.entries.get(name).is_some_and(|entry| entry.content.is_loaded());
            let step = if is_loaded { self.step_of(name).await } else { Ok((None, self.step_unloaded(name).await)) };
            let due = match step {
                Ok((due, None)) => due,
                Ok((due, Some(failure))) => {
                    rolled.returned.insert(name.clone(), failure);
                    due
                }
                Err(error) => {
                    rolled.done = rolled.done.and(Err(error));
                    None
                }
            };
            let look = self.records.status(name).rollout.map_or(LOOK, |rollout| look(&rollout));
            let due = due.map_or(look, |due| self.until(due).min(look));
            rolled.wait = Some(rolled.wait.map_or(due, |wait| wait.min(due)));
            states.extend(self.state_for_metrics(name));
        }
        self.tools.metrics.rollouts(&states);
        rolled
    }

    fn until(&self, due: Timestamp) -> Duration {
        let left = due.duration_since(self.tools.clock.now());
        // The recorded times have whole seconds, so look a second later.
        Duration::try_from(left).unwrap_or_default() + Duration::from_secs(1)
    }

    /// Takes the next step of a rollout. Returns the time of the next look, and why the rollout returns.
    async fn step_of(&mut self, name: &str) -> Result<(Option<Timestamp>, Option<ServiceFailure>), StepError> {
        let Some(revision) = self.records.get(name) else { return Ok((None, None)) };
        let status = revision.status.clone().unwrap_or_default();
        let (Some(mut rollout), Some(stage)) = (status.rollout.clone(), self.revisions.stage(name)) else {
            return Ok((None, None));
        };
        let request = request(revision, &rollout);
        let objects = self.sights(name, &stage);
        let now = self.tools.clock.now();
        let facts = RolloutFacts {
            rollout: &rollout,
            objects: objects.as_deref(),
            can_yield: stage.can_yield,
            request: request.clone(),
            now,
        };
        let decision = if self.records.has_rollouts() {
            facts.decide()
        } else {
            Decision::Return { why: OLD_DEFINITION.to_owned() }
        };
        let due = match decision {
            Decision::Wait(due) => due,
            Decision::Return { why } => {
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
            let moved = objects.iter().filter(|object| !rollout.is_open() || up_to >= Some(object.hash)).count();
            rollout.moved = i64::try_from(moved).unwrap_or(i64::MAX);
            rollout.objects = i64::try_from(objects.len()).unwrap_or(i64::MAX);
        }
        rollout.summary = told::summary(&rollout);
        if Some(&rollout) == status.rollout.as_ref() {
            return Ok((due, None));
        }
        self.record_rollout(name, rollout, &decision, by.as_deref()).await?;
        Ok((due, None))
    }

    /// Writes the state of a rollout, and then acts on it.
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

    /// Returns what the operator sees of the objects that a rollout concerns: objects without a pin for which the
    /// policies differ with and without the revision. Returns `None` while the operator does not see all objects, or
    /// before the swap to the tables of the rollout.
    fn sights(&self, name: &str, stage: &RolloutStage) -> Option<Vec<ObjectSight>> {
        let snapshot = self.tools.catalogue.load()?;
        let is_swapped = snapshot.staging().stages.iter().any(|it| *it.revision == *name && it.moved == stage.moved);
        if !is_swapped || !self.objects_are_seen() {
            return None;
        }
        let ledger = self.tools.catalogue.ledger();
        let (choosing, book) = (ledger.choosing(), ledger.book(name));
        let mut sights = Vec::new();
        for of in &stage.kinds {
            for key in self.tools.watch.keys(of) {
                if choosing.contains(&key) || !is_concerned(&snapshot, stage, &key.of, &key.namespace) {
                    continue;
                }
                let Some(object) = self.tools.watch.object(&key) else { continue };
                let ready = condition(&object, READY);
                sights.push(ObjectSight {
                    hash: stage.moved.hash(of, &key.namespace, &key.name),
                    had_pass: book.knows(&key),
                    pods: self.pods_of(&object),
                    is_ready: is_true(&object, READY),
                    ready_since: ready.and_then(|ready| parsed(ready["lastTransitionTime"].as_str())),
                    created: parsed(object["metadata"]["creationTimestamp"].as_str()),
                    key,
                });
            }
        }
        Some(sights)
    }

    /// Returns the number of pods of an object's children.
    fn pods_of(&self, object: &Value) -> u64 {
        let children = self.tools.watch.children(object["metadata"]["uid"].as_str().unwrap_or_default());
        // Do not parse ConfigMaps and Services, because many objects have them.
        let may_have_pods = |child: &&Seen| child.of.api_version != "v1" || child.of.kind == "Pod";
        let children = children.iter().filter(may_have_pods).filter_map(Seen::object);
        children.map(|child| pods(&child, || Some(child.clone()))).sum()
    }

    /// Loads the predecessor of a revision that is rolled out, if an earlier attempt failed.
    async fn load_yielding(&mut self, name: &str, found: &[Found]) {
        let Some(before) = self.revisions.entries.get(name).and_then(|entry| entry.predecessor.clone()) else { return };
        let is_loaded = |this: &Self| this.revisions.entries.get(&before).is_some_and(|it| it.content.is_loaded());
        let is_due = self.due.get(&before).is_none_or(|due| Instant::now() >= *due);
        let Some(revision) = self.records.get(&before).cloned() else { return };
        // A predecessor in any other state was found to be lost.
        let may_load = revision.status.as_ref().is_some_and(|status| status.state == RevisionState::Yielding);
        if is_loaded(self) || !is_due || !may_load || !self.may_yield_again(&before) {
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

    /// Counts a rollout that returned all objects.
    pub(super) fn count_return(&self, name: &str, reason: &str) {
        if let Some(revision) = self.records.get(name).filter(|_| reason == RETURNED) {
            let PolicySource { namespace, config_map } = &revision.spec.source;
            self.tools.metrics.rollout_returned(&format!("{namespace}/{config_map}"));
        }
    }

    fn state_for_metrics(&self, name: &str) -> Option<RolloutState> {
        let revision = self.records.get(name)?;
        let rollout = revision.status.as_ref()?.open_rollout()?;
        let number = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        Some(RolloutState {
            package: format!("{}/{}", revision.spec.source.namespace, revision.spec.source.config_map),
            step: number(rollout.begun()),
            moved: rollout.moved,
            left: (rollout.objects - rollout.moved).max(0),
            paused: rollout.paused.as_ref().map(|paused| paused.reason.clone()),
        })
    }
}

/// Returns the time between two looks at the objects of a rollout.
fn look(rollout: &PolicyRollout) -> Duration {
    let pause = rollout.pause.parse().map_or(LOOK, |Wait(pause)| pause / LOOKS);
    pause.clamp(SHORT_LOOK, LOOK)
}

/// Changes the recorded state of a rollout as decided.
fn advance(rollout: &mut PolicyRollout, decision: &Decision, now: Timestamp) {
    match decision {
        Decision::Begin { step, up_to, goal } => {
            let begun = rollout.begun();
            // A skipped step begins together with the next step, because it moves no other object.
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
                (step.up_to, step.moved_at) = (Some(format!("{up_to:016x}")), Some(written(now)));
                step.goal = step.goal.take().filter(|goal| step.up_to.as_ref() != Some(goal));
            }
            rollout.paused = None;
        }
        Decision::Pause(pause) => rollout.paused = Some(pause.clone()),
        Decision::Resume => rollout.paused = None,
        Decision::Finish => (rollout.ended, rollout.paused) = (Some(written(now)), None),
        Decision::Wait(_) | Decision::Return { .. } => {}
    }
}

/// Ends the rollout of a revision that stops serving. `how` is the first word of its summary.
pub(super) fn end_rollout(rollout: &mut Option<PolicyRollout>, how: &str, now: Timestamp) {
    if let Some(rollout) = rollout.as_mut().filter(|rollout| rollout.is_open()) {
        rollout.ended = Some(written(now));
        rollout.summary = format!("{how} at {}", told::step(rollout));
    }
}

/// Returns whether the policies for the objects of a place differ with and without the revision of a rollout.
fn is_concerned(snapshot: &Snapshot, stage: &RolloutStage, of: &ResourceType, namespace: &str) -> bool {
    if !stage.concerns(of, namespace) {
        return false;
    }
    let undone = Predecessors { of_owner: !stage.is_local, of_tenants: stage.is_local };
    match [snapshot.current_in(of, namespace), snapshot.before_in(undone, of, namespace)] {
        [Some(now), Some(before)] => !Arc::ptr_eq(now, before),
        [None, None] => false,
        _ => true,
    }
}
