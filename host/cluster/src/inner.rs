//! The parts of a cluster that all handles share.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use fastrand::Rng;
use jiff::Timestamp;
use tokio::sync::Notify;

use crate::{
    access::Access,
    clock::Clock,
    controllers::{Controllers, Fates},
    faults::{Attempt, EventFate, FaultPlan, Journal, Verdict},
    lock::lock,
    logs::Logs,
    signal,
    state::State,
};

/// The shared parts of a cluster, each with its own lock. Code that locks both the state and the controllers locks the
/// state first.
pub(crate) struct Inner {
    pub(crate) state: Mutex<State>,
    pub(crate) controllers: Mutex<Controllers>,
    pub(crate) fates: Mutex<Fates>,
    pub(crate) plan: Mutex<(Box<dyn FaultPlan>, Rng)>,
    pub(crate) access: Mutex<Access>,
    pub(crate) users: Mutex<BTreeMap<String, String>>,
    pub(crate) journal: Journal,
    pub(crate) logs: Arc<Logs>,
    pub(crate) clock: Arc<dyn Clock>,
    /// A hint that the cluster adds to each error about a path that is not served.
    pub(crate) instead: Option<String>,
    pub(crate) poke: Arc<Notify>,
    pub(crate) settled: signal::Sender,
    pub(crate) cuts: signal::Sender,
}

impl Inner {
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn revision(&self) -> u64 {
        lock(&self.state).store.revision()
    }

    pub(crate) fn with_state<T>(&self, ask: impl FnOnce(&State) -> T) -> T {
        ask(&lock(&self.state))
    }

    pub(crate) fn decide(&self, attempt: &Attempt) -> Verdict {
        let (plan, rng) = &mut *lock(&self.plan);
        plan.request(attempt, rng)
    }

    pub(crate) fn applied(&self, attempt: &Attempt) {
        lock(&self.plan).0.applied(attempt);
    }

    pub(crate) fn fate_of_event(&self, watch: &Attempt, kind: &str) -> EventFate {
        let (plan, rng) = &mut *lock(&self.plan);
        plan.event(watch, kind, rng)
    }

    pub(crate) fn cuts(&self) -> signal::Receiver {
        self.cuts.subscribe()
    }
}
