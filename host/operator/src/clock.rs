//! The time of day.

use jiff::Timestamp;
use tokio::time::Instant;

/// The time of day, for timestamps in objects. Code that only measures durations uses tokio's time instead.
#[derive(Debug, Clone, Copy, Default)]
pub enum Clock {
    /// The machine's clock.
    #[default]
    System,
    /// A start time plus tokio's elapsed time. With tokio's paused time, the clock shows the same times in every run.
    Since(Timestamp, Instant),
}

impl Clock {
    /// Returns a clock that starts at `moment` and advances with tokio's time.
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
