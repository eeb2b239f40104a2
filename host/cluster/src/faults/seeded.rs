//! A plan that injects each kind of fault at a given rate.

use std::time::Duration;

use fastrand::Rng;

use super::{Attempt, EventFate, Failure, FaultPlan, Outcome, Verdict};

/// Faults at rates between 0 and 1. All rates are 0 by default.
#[derive(Debug, Clone, Default)]
pub struct SeededFaults {
    /// The rate of server errors, throttling, conflicts and broken connections before the request has an effect.
    pub before: f64,
    /// The rate of failures after the request has had its effect.
    pub after: f64,
    /// The rate of reads that the cluster answers from an older state.
    pub stale: f64,
    /// The rate of delayed requests.
    pub slow: f64,
    /// The maximum delay of requests and events.
    pub slowest: Duration,
    /// The rate at which a broken connection replaces an event.
    pub cut: f64,
    /// The rate at which status 410, which ends the watch, replaces an event.
    pub expire: f64,
    /// The rate of events that the cluster sends twice.
    pub duplicate: f64,
    /// The rate of delayed events.
    pub late: f64,
}

impl SeededFaults {
    /// Returns a plan in which all faults have the same rate.
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
        // Round to whole milliseconds, the unit of timers. With fractions of milliseconds, two runs with the same seed
        // would differ.
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
            // The request has already taken effect, so choose only a broken connection or a 504: both leave open
            // whether the request took effect. A conflict would mean that the request took no effect.
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
