//! How long a lease holds, and how often it is renewed.

use std::time::Duration;

/// The three times of a lease. What they are unless said otherwise is what the Go operator has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// Others may take a lease that was not renewed for so long.
    pub duration: Duration,
    /// The holder stops writing when it could not renew for so long. The rest of `duration` is for writes that are on
    /// their way.
    pub renew_deadline: Duration,
    /// Between two tries, to renew as well as to take over.
    pub retry_period: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { duration: seconds(15), renew_deadline: seconds(10), retry_period: seconds(2) }
    }
}

/// Times that would not keep two writers apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TimingError {
    /// The API counts whole seconds.
    #[error("the lease duration has to be a whole number of seconds, at least 1")]
    Duration,
    /// The holder would write when another may.
    #[error("the renew deadline has to be shorter than the lease duration")]
    Deadline,
    /// One try would be all there is.
    #[error("the retry period has to be longer than 0 and at most half of the renew deadline")]
    Period,
}

impl Timing {
    /// Refuses times that do not go together.
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

    /// What one try to renew may take, so that there is time for another.
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
