//! What goes wrong with the operator's requests and watches. Users and controllers have better luck.

use fastrand::Rng;
use kaos_cluster::faults::{Attempt, EventFate, FaultPlan, SeededFaults, Verdict};
use kaos_tests::harness::faults::OPERATOR;

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

    /// As the cluster takes it.
    pub(crate) fn plan(self) -> impl FaultPlan + use<> {
        OfOperator { faults: SeededFaults::everything(self.rate), dropped: self.dropped }
    }
}

struct OfOperator {
    faults: SeededFaults,
    dropped: f64,
}

impl FaultPlan for OfOperator {
    fn request(&mut self, attempt: &Attempt, rng: &mut Rng) -> Verdict {
        if attempt.user == OPERATOR { self.faults.request(attempt, rng) } else { Verdict::default() }
    }

    fn event(&mut self, watch: &Attempt, kind: &str, rng: &mut Rng) -> EventFate {
        if watch.user != OPERATOR {
            return EventFate::Deliver;
        }
        match self.faults.event(watch, kind, rng) {
            EventFate::Deliver if kind != "BOOKMARK" && rng.f64() < self.dropped => EventFate::Drop,
            fate => fate,
        }
    }
}
