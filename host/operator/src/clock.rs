//! The time of day.

use jiff::Timestamp;
use tokio::time::Instant;

/// The time of day, for timestamps in objects. Everything else uses tokio's time.
#[derive(Debug, Clone, Copy, Default)]
pub enum Clock {
    /// The machine's clock.
    #[default]
    System,
    /// A start time plus tokio's elapsed time. Under paused time it is the same in every run.
    Since(Timestamp, Instant),
}

impl Clock {
    /// A clock that starts at `moment` and advances with tokio's time.
    pub fn starting_at(moment: Timestamp) -> Self {
        Self::Since(moment, Instant::now())
    }

    /// Returns the current time.
    pub fn now(&self) -> Timestamp {
        match self {
            Self::System => Timestamp::now(),
            Self::Since(moment, start) => moment.saturating_add(start.elapsed()).unwrap_or(*moment),
        }
    }
}
