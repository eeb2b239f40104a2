//! The duration of a Lease and the times of its renewal.

use std::time::Duration;

/// The three times of a Lease. The Go operator has the same defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// If the holder did not renew the Lease for this time, another replica can take the Lease.
    pub duration: Duration,
    /// The holder stops writing if it could not renew the Lease for this time. The API server can still process writes
    /// that it already received. So this time must be shorter than `duration`.
    pub renew_deadline: Duration,
    /// The time between two attempts to renew the Lease or to take it over.
    pub retry_period: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { duration: seconds(15), renew_deadline: seconds(10), retry_period: seconds(2) }
    }
}

/// A reason why the three times are not valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TimingError {
    /// The API accepts only whole seconds as the duration, and at least one.
    #[error("the lease duration has to be a whole number of seconds, at least 1")]
    Duration,
    /// The renewal deadline is not shorter than the duration. So two replicas could write at the same time.
    #[error("the renew deadline has to be shorter than the lease duration")]
    Deadline,
    /// The retry period is so long that only one attempt fits into the deadline.
    #[error("the retry period has to be longer than 0 and at most half of the renew deadline")]
    Period,
}

impl Timing {
    /// Checks that the times do not contradict each other.
    pub fn check(&self) -> Result<(), TimingError> {
        let Self { duration, renew_deadline, retry_period } = *self;
        let countable = duration.subsec_nanos() == 0 && i32::try_from(duration.as_secs()).is_ok_and(|whole| whole > 0);
        if !countable {
            Err(TimingError::Duration)
        } else if renew_deadline >= duration {
            Err(TimingError::Deadline)
        } else if retry_period.is_zero() || retry_period > renew_deadline / 2 {
            Err(TimingError::Period)
        } else {
            Ok(())
        }
    }

    /// Returns the maximum time for one attempt to renew. After an attempt of this length, there is time for a second
    /// attempt.
    pub(super) fn attempt(&self) -> Duration {
        self.renew_deadline / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_would_let_two_write_are_refused() {
        let with = |duration, deadline, period| {
            let milliseconds = Duration::from_millis;
            Timing {
                duration: milliseconds(duration),
                renew_deadline: milliseconds(deadline),
                retry_period: milliseconds(period),
            }
            .check()
        };
        assert_eq!(Timing::default().check(), Ok(()));
        assert_eq!(with(1500, 1000, 200), Err(TimingError::Duration));
        assert_eq!(with(0, 0, 0), Err(TimingError::Duration));
        assert_eq!(with(10_000, 10_000, 200), Err(TimingError::Deadline));
        assert_eq!(with(10_000, 8000, 0), Err(TimingError::Period));
        assert_eq!(with(10_000, 8000, 5000), Err(TimingError::Period));
    }
}
