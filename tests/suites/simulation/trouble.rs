//! The faults in the operator's requests and watches. Requests of users and controllers have no faults.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use kaos_cluster::faults::{Attempt, EventFate, Failure, FaultPlan, Outcome, SeededFaults, Verdict};
use kaos_tests::harness::faults::is_operator;

use crate::hits::Hits;

/// The user that the simulation has cut off, so that the user's requests do not reach the API server. `None` if no user
/// is cut off. All clones share this state.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cut(Arc<Mutex<Option<Off>>>);

/// A user that the simulation has cut off from the API server.
#[derive(Debug, Clone)]
struct Off {
    user: String,
    /// Whether the user's requests hang. If false, the requests fail immediately.
    hangs: bool,
}

impl Cut {
    pub(crate) fn off(&self, user: String, hangs: bool) {
        self.set(Some(Off { user, hangs }));
    }

    pub(crate) fn mend(&self) {
        self.set(None);
    }

    fn set(&self, off: Option<Off>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = off;
    }

    fn verdict(&self, user: &str) -> Option<Verdict> {
        let off = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let off = off.as_ref().filter(|off| off.user == user)?;
        let delay = if off.hangs { Duration::from_mins(10) } else { Duration::ZERO };
        Some(Verdict { delay, outcome: Outcome::FailBefore(Failure::Disconnect) })
    }
}

/// How often faults occur.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trouble {
    /// The probability with which each kind of fault hits a request or a watch.
    rate: f64,
    /// The probability with which the operator does not receive a watch event, and gets no error.
    dropped: f64,
}

impl Trouble {
    /// Returns how often faults occur in the run of this seed. Some seeds have no faults.
    pub(crate) fn of(seed: u64) -> Self {
        let rate = [0.0, 0.02, 0.05, 0.1][usize::try_from(seed % 4).unwrap_or(0)];
        Self { rate, dropped: if seed % 16 == 15 { 0.02 } else { 0.0 } }
    }

    /// Returns whether the faults lose watch events, so that only a new list can repair the operator's cache.
    pub(crate) fn loses_events(self) -> bool {
        self.dropped > 0.0
    }

    /// Returns the fault plan for the cluster. `hits` counts the faults.
    pub(crate) fn plan(self, cut: &Cut, hits: &Hits) -> impl FaultPlan + use<> {
        let (cut, hits) = (cut.clone(), hits.clone());
        OfOperator { faults: SeededFaults::everything(self.rate), dropped: self.dropped, cut, hits }
    }
}

struct OfOperator {
    faults: SeededFaults,
    dropped: f64,
    cut: Cut,
    hits: Hits,
}

impl FaultPlan for OfOperator {
    fn request(&mut self, attempt: &Attempt, rng: &mut Rng) -> Verdict {
        if !is_operator(&attempt.user) {
            return Verdict::default();
        }
        if let Some(verdict) = self.cut.verdict(&attempt.user) {
            self.hits.cut_off();
            return verdict;
        }
        let verdict = self.faults.request(attempt, rng);
        self.hits.request(&verdict);
        verdict
    }

    fn event(&mut self, watch: &Attempt, kind: &str, rng: &mut Rng) -> EventFate {
        if !is_operator(&watch.user) {
            return EventFate::Deliver;
        }
        let fate = match self.faults.event(watch, kind, rng) {
            EventFate::Deliver if kind != "BOOKMARK" && rng.f64() < self.dropped => EventFate::Drop,
            fate => fate,
        };
        self.hits.event(&fate);
        fate
    }
}
