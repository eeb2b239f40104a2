//! Counts how often each kind of fault occurred in the simulation. The simulation proves nothing about a kind of fault
//! that never occurred.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use kaos_cluster::faults::{EventFate, Outcome, Verdict};

/// All kinds of faults.
const KINDS: [&str; 11] = [
    "request to a replica that is cut off",
    "request that is slow",
    "request that fails before its effect",
    "request that fails after its effect",
    "read with an old answer",
    "watch that breaks",
    "watch that expires",
    "event that comes twice",
    "event that comes late",
    "event that is lost",
    "crash at a write",
];

/// The number of faults of each kind. All clones share the numbers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hits(Arc<Mutex<BTreeMap<&'static str, u64>>>);

impl Hits {
    pub(crate) fn cut_off(&self) {
        self.count(KINDS[0]);
    }

    pub(crate) fn crash(&self) {
        self.count(KINDS[10]);
    }

    pub(crate) fn request(&self, verdict: &Verdict) {
        if !verdict.delay.is_zero() {
            self.count(KINDS[1]);
        }
        match verdict.outcome {
            Outcome::FailBefore(_) => self.count(KINDS[2]),
            Outcome::FailAfter(_) => self.count(KINDS[3]),
            Outcome::Stale(_) => self.count(KINDS[4]),
            Outcome::Proceed => {}
        }
    }

    pub(crate) fn event(&self, fate: &EventFate) {
        match fate {
            EventFate::Cut => self.count(KINDS[5]),
            EventFate::Expire => self.count(KINDS[6]),
            EventFate::Duplicate => self.count(KINDS[7]),
            EventFate::Delay(_) => self.count(KINDS[8]),
            EventFate::Drop => self.count(KINDS[9]),
            EventFate::Deliver => {}
        }
    }

    fn count(&self, kind: &'static str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(kind).or_default() += 1;
    }

    /// Returns the number of faults of each kind, one kind per line.
    pub(crate) fn table(&self) -> String {
        let counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        KINDS.map(|kind| format!("{:>8} {kind}\n", counted.get(kind).copied().unwrap_or_default())).concat()
    }

    /// Returns the kinds of faults that never occurred.
    pub(crate) fn missing(&self) -> Vec<&'static str> {
        let counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        KINDS.into_iter().filter(|kind| !counted.contains_key(kind)).collect()
    }
}
