//! What goes wrong with the operator's requests and watches. Users and controllers have better luck.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use kaos_cluster::faults::{Attempt, EventFate, Failure, FaultPlan, Outcome, SeededFaults, Verdict};
use kaos_tests::harness::faults::is_operator;

/// Who is cut off from the API server. Clones are the same cut.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cut(Arc<Mutex<Option<Off>>>);

/// How somebody is cut off.
#[derive(Debug, Clone)]
struct Off {
    user: String,
    /// Requests get no answer for ever so long, rather than an error at once.
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

/// How bad it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trouble {
    /// Of each kind of fault, how often.
    rate: f64,
    /// How many events are lost without anybody being told.
    dropped: f64,
}

impl Trouble {
    /// Every seed has its own; some have none.
    pub(crate) fn of(seed: u64) -> Self {
        let rate = [0.0, 0.02, 0.05, 0.1][usize::try_from(seed % 4).unwrap_or(0)];
        Self { rate, dropped: if seed % 16 == 15 { 0.02 } else { 0.0 } }
    }

    /// Whether only listing everything anew heals it.
    pub(crate) fn loses_events(self) -> bool {
        self.dropped > 0.0
    }

    /// As the cluster takes it; `hits` counts what goes wrong.
    pub(crate) fn plan(self, cut: &Cut, hits: &Arc<AtomicUsize>) -> impl FaultPlan + use<> {
        let (cut, hits) = (cut.clone(), Arc::clone(hits));
        OfOperator { faults: SeededFaults::everything(self.rate), dropped: self.dropped, cut, hits }
    }
}

struct OfOperator {
    faults: SeededFaults,
    dropped: f64,
    cut: Cut,
    hits: Arc<AtomicUsize>,
}

impl OfOperator {
    fn note(&self, is_hit: bool) {
        self.hits.fetch_add(usize::from(is_hit), Ordering::Relaxed);
    }
}

impl FaultPlan for OfOperator {
    fn request(&mut self, attempt: &Attempt, rng: &mut Rng) -> Verdict {
        if !is_operator(&attempt.user) {
            return Verdict::default();
        }
        let verdict = self.cut.verdict(&attempt.user).unwrap_or_else(|| self.faults.request(attempt, rng));
        self.note(verdict != Verdict::default());
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
        self.note(fate != EventFate::Deliver);
        fate
    }
}
