//! The few controllers that an operator needs:
//!
//! - Deployments get `ReplicaSet`s and pods; `StatefulSet`s and Jobs get pods.
//! - Pods become ready or end, and budgets count them.
//! - When an owner is deleted, its dependents are deleted too, and namespaces terminate.
//! - The cluster serves the types of CustomResourceDefinitions, and Events expire.
//!
//! Every controller is a function that reads the state and writes objects. The cluster calls controllers for changed
//! objects, in the order of their keys, until no object changes any more. A controller gets the time only as an
//! argument and from timers.

mod adopt;
mod budgets;
mod definitions;
mod deployments;
mod ends;
mod events;
mod fate;
mod garbage;
mod jobs;
mod moment;
mod namespaces;
mod objects;
mod pod_status;
mod pods;
mod replica_sets;
mod rollout;
mod stateful_sets;
mod template;
mod workers;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use tokio::time::{Duration, Instant};

pub(crate) use fate::Fates;
pub use fate::PodFate;
pub(crate) use moment::Moment;

use objects::{
    budget_objects, controlled, controller_of, custom_definitions, deployment_objects, job_objects, pods,
    replica_set_objects, served, stateful_set_objects,
};

use crate::{
    state::State,
    storage::{Change, Key, ObjectId, controller, meta, owners},
};

/// An object to reconcile. The order of the variants is the order of the queue. Pods come before their owners, so an
/// owner counts its pods only once, after all its pods have changed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Work {
    Definition(Key),
    Namespace(String),
    Garbage(ObjectId),
    Pod(Key),
    Deployment(Key),
    ReplicaSet(Key),
    StatefulSet(Key),
    Job(Key),
    Budget(Key),
    Event(Key),
}

/// A controller that tests can pause, to simulate a restart or a delay of a real controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Controller {
    /// Deletes objects without a remaining owner.
    Garbage,
    /// Creates the `ReplicaSet`s of Deployments, and reports the progress of rollouts.
    Deployments,
}

impl Work {
    fn controller(&self) -> Option<Controller> {
        match self {
            Self::Garbage(_) => Some(Controller::Garbage),
            Self::Deployment(_) => Some(Controller::Deployments),
            _ => None,
        }
    }
}

/// The controllers' queue and timers.
#[derive(Debug)]
pub(crate) struct Controllers {
    /// Whether all controllers run. If false, only the controller for CustomResourceDefinitions runs.
    all: bool,
    /// The paused controllers, and the work that waits for them.
    away: BTreeMap<Controller, BTreeSet<Work>>,
    queue: BTreeSet<Work>,
    timers: BTreeMap<Instant, BTreeSet<Work>>,
}

impl Controllers {
    /// Creates the controllers. If `all` is false, only the controller for CustomResourceDefinitions runs: in a real
    /// cluster, it is a part of the API server.
    pub(crate) fn new(all: bool) -> Self {
        Self { all, away: BTreeMap::new(), queue: BTreeSet::new(), timers: BTreeMap::new() }
    }

    /// Runs the controllers until all work that is due now is done. Returns the time at which the next timer is due, or
    /// `None` without a timer.
    pub(crate) fn run(&mut self, state: &mut State, moment: &Moment<'_>) -> Option<Instant> {
        while let Some(due) = self.timers.first_entry().filter(|due| *due.key() <= moment.instant) {
            self.queue.extend(due.remove());
        }
        loop {
            for (place, change) in state.store.take_touched() {
                self.enqueue(state, place, &change);
            }
            let Some(work) = self.queue.pop_first() else { break };
            if !self.all && !matches!(work, Work::Definition(_)) {
                continue;
            }
            if let Some(waiting) = work.controller().and_then(|controller| self.away.get_mut(&controller)) {
                waiting.insert(work);
                continue;
            }
            if let Some(again) = perform(state, &work, moment) {
                // If the time is beyond the clock's range, the timer never fires.
                if let Some(at) = moment.instant.checked_add(again) {
                    self.timers.entry(at).or_default().insert(work);
                }
            }
        }
        self.timers.keys().next().copied()
    }

    /// Pauses a controller. Its work waits.
    pub(crate) fn send_away(&mut self, controller: Controller) {
        self.away.entry(controller).or_default();
    }

    /// Resumes a controller. Queues the work that has waited for this controller.
    pub(crate) fn call_back(&mut self, controller: Controller) {
        self.queue.extend(self.away.remove(&controller).unwrap_or_default());
    }

    /// Reconciles every pod again, because a test changed the fate of pods.
    pub(crate) fn revisit_pods(&mut self, state: &State) {
        let pods = state.store.list(&pods(), "");
        self.queue.extend(pods.map(|(key, _)| Work::Pod(key.clone())));
    }

    fn enqueue(&mut self, state: &State, place: ObjectId, change: &Change) {
        let object = &change.after;
        let key = place.key.clone();
        match (place.resource.group.as_str(), place.resource.plural.as_str()) {
            ("apps", "deployments") => drop(self.queue.insert(Work::Deployment(key))),
            ("apps", "replicasets") => {
                self.queue
                    .extend(controller_of(object).map(|owner| Work::Deployment(Key::new(&key.namespace, &owner))));
                self.queue.insert(Work::ReplicaSet(key));
            }
            ("", "pods") => {
                self.queue.extend(owner_of_pod(object, &key.namespace));
                let budgets = state.store.list(&budget_objects(), &key.namespace);
                self.queue.extend(budgets.map(|(budget, _)| Work::Budget(budget.clone())));
                self.queue.insert(Work::Pod(key));
            }
            ("apps", "statefulsets") => drop(self.queue.insert(Work::StatefulSet(key))),
            ("batch", "jobs") => drop(self.queue.insert(Work::Job(key))),
            ("policy", "poddisruptionbudgets") => drop(self.queue.insert(Work::Budget(key))),
            ("", "events") if !change.deleted => drop(self.queue.insert(Work::Event(key))),
            ("", "namespaces") => drop(self.queue.insert(Work::Namespace(key.name))),
            ("apiextensions.k8s.io", _) => drop(self.queue.insert(Work::Definition(key))),
            _ => {}
        }
        if change.deleted {
            let dependents = state.store.dependents(meta(object, "uid"));
            self.queue.extend(dependents.into_iter().map(Work::Garbage));
            self.after_removal(state, &place, object);
        } else if object["metadata"]["ownerReferences"].is_array() || !meta(object, "deletionTimestamp").is_empty() {
            self.queue.insert(Work::Garbage(place));
        }
    }

    /// Queues objects that possibly waited for the removal of another object.
    fn after_removal(&mut self, state: &State, place: &ObjectId, object: &Value) {
        for owner in owners(object) {
            let found = owner["uid"].as_str().and_then(|uid| state.store.by_uid(uid));
            self.queue.extend(found.map(|(place, _)| Work::Garbage(place.clone())));
        }
        if !place.key.namespace.is_empty() {
            self.queue.insert(Work::Namespace(place.key.namespace.clone()));
        }
        let definition = format!("{}.{}", place.resource.plural, place.resource.group);
        if state.store.get(&custom_definitions(), &Key::new("", &definition)).is_some() {
            self.queue.insert(Work::Definition(Key::new("", &definition)));
        }
    }
}

/// Reconciles one object. Returns the time after which the controller must run again for this object; `None` if it does
/// not have to.
fn perform(state: &mut State, work: &Work, moment: &Moment<'_>) -> Option<Duration> {
    match work {
        Work::Definition(key) => definitions::sync(state, key, moment),
        Work::Namespace(name) => namespaces::sync(state, name, moment),
        Work::Garbage(place) => garbage::sync(state, place, moment),
        Work::Deployment(key) => return deployments::sync(state, key, moment),
        Work::ReplicaSet(key) => return replica_sets::sync(state, key, moment),
        Work::StatefulSet(key) => return stateful_sets::sync(state, key, moment),
        Work::Job(key) => return jobs::sync(state, key, moment),
        Work::Budget(key) => budgets::sync(state, key, moment),
        Work::Pod(key) => return pods::sync(state, key, moment),
        Work::Event(key) => return events::sync(state, key, moment),
    }
    None
}

/// Returns the controller of a pod as an object to reconcile, or `None` without a controller.
fn owner_of_pod(pod: &Value, namespace: &str) -> Option<Work> {
    let owner = controller(pod)?;
    let key = Key::new(namespace, owner["name"].as_str()?);
    Some(match owner["kind"].as_str()? {
        "StatefulSet" => Work::StatefulSet(key),
        "Job" => Work::Job(key),
        _ => Work::ReplicaSet(key),
    })
}
