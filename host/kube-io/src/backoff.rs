//! Backoff: waits that grow exponentially with the number of failures, up to a maximum. If many processes or objects
//! wait for one server, jitter spreads the retries over time.

use std::time::Duration;

use fastrand::Rng;

/// The first wait and the maximum wait of a backoff.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The wait after the first failure.
    pub first: Duration,
    /// The maximum wait.
    pub max: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { first: Duration::from_secs(1), max: Duration::from_mins(5) }
    }
}

impl Backoff {
    /// Returns the full wait after this number of failures in a row.
    pub fn full(&self, failures: u32) -> Duration {
        let doubled = 1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
        self.first.checked_mul(doubled).unwrap_or(self.max).min(self.max)
    }

    /// Returns the wait after this number of failures in a row: a random time between half of the full wait and the
    /// full wait.
    pub fn after(&self, failures: u32, rng: &mut Rng) -> Duration {
        in_millis(self.full(failures).mul_f64(0.5 + rng.f64() / 2.0))
    }
}

/// Rounds a time down to whole milliseconds, the unit of timers. Without rounding, the remainder would depend on the
/// start time of the process, and tests could not repeat a run exactly.
pub fn in_millis(time: Duration) -> Duration {
    Duration::from_millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_doubles_up_to_the_cap_and_keeps_at_least_half_of_itself() {
        let backoff = Backoff { first: Duration::from_secs(1), max: Duration::from_secs(10) };
        let mut rng = Rng::with_seed(7);
        for (failures, full) in [(1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (40, 10), (u32::MAX, 10)] {
            let full = Duration::from_secs(full);
            assert_eq!(backoff.full(failures), full);
            for _ in 0..100 {
                let wait = backoff.after(failures, &mut rng);
                assert!(wait >= full / 2 && wait <= full, "{failures}: {wait:?}");
            }
        }
    }

    #[test]
    fn waits_are_not_all_the_same() {
        let mut rng = Rng::with_seed(7);
        let waits: std::collections::BTreeSet<_> = (0..100).map(|_| Backoff::default().after(3, &mut rng)).collect();
        assert!(waits.len() > 90);
    }

    #[test]
    fn the_same_seed_draws_the_same_waits() {
        let draw = |seed| {
            let mut rng = Rng::with_seed(seed);
            (1..9).map(|failures| Backoff::default().after(failures, &mut rng)).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }
}
