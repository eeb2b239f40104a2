//! A plan that lets everything go wrong now and then, at given rates.

use std::time::Duration;

use fastrand::Rng;

use super::{Attempt, EventFate, Failure, FaultPlan, Outcome, Verdict};

/// Faults at rates between 0 and 1. All are 0 by default.
#[derive(Debug, Clone, Default)]
pub struct SeededFaults {
    /// Errors of the server, throttling, conflicts and broken connections, before the request had an effect.
    pub before: f64,
    /// The same after it had.
    pub after: f64,
    /// Reads of an older state.
    pub stale: f64,
    /// Requests that wait.
    pub slow: f64,
    /// How long the slowest waits.
    pub slowest: Duration,
    /// Events whose watch breaks instead.
    pub cut: f64,
    /// Events whose watch expires instead.
    pub expire: f64,
    /// Events that are sent twice.
    pub duplicate: f64,
    /// Events that wait.
    pub late: f64,
}

impl SeededFaults {
    /// Every fault, each at one rate.
    pub fn everything(rate: f64) -> Self {
        Self {
            before: rate,
            after: rate,
            stale: rate,
            slow: rate,
            slowest: Duration::from_secs(2),
            cut: rate,
            expire: rate,
            duplicate: rate,
            late: rate,
        }
    }

    fn wait(&self, rng: &mut Rng) -> Duration {
        // In whole milliseconds, as timers count: a rest would make runs of one seed differ.
        let millis = self.slowest.mul_f64(rng.f64()).as_millis();
        Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
    }
}

fn failure(attempt: &Attempt, rng: &mut Rng) -> Failure {
    match rng.u8(..5) {
        0 => Failure::Server(500),
        1 => Failure::Server(503),
        2 => Failure::Throttled(1),
        3 if attempt.verb.is_write() => Failure::Conflict,
        _ => Failure::Disconnect,
    }
}

impl FaultPlan for SeededFaults {
    fn request(&mut self, attempt: &Attempt, rng: &mut Rng) -> Verdict {
        let delay = if rng.f64() < self.slow { self.wait(rng) } else { Duration::ZERO };
        let outcome = if rng.f64() < self.before {
            Outcome::FailBefore(failure(attempt, rng))
        } else if attempt.verb.is_write() && rng.f64() < self.after {
            // An answer that is lost looks like any failure but a conflict, which promises that nothing happened.
            let lost = if rng.bool() { Failure::Disconnect } else { Failure::Server(504) };
            Outcome::FailAfter(lost)
        } else if !attempt.verb.is_write() && rng.f64() < self.stale {
            Outcome::Stale(rng.u64(1..10))
        } else {
            Outcome::Proceed
        };
        Verdict { delay, outcome }
    }

    fn event(&mut self, _: &Attempt, _: &str, rng: &mut Rng) -> EventFate {
        if rng.f64() < self.cut {
            EventFate::Cut
        } else if rng.f64() < self.expire {
            EventFate::Expire
        } else if rng.f64() < self.duplicate {
            EventFate::Duplicate
        } else if rng.f64() < self.late {
            EventFate::Delay(self.wait(rng))
        } else {
            EventFate::Deliver
        }
    }
}
