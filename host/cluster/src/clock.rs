//! The current time. The clock is a parameter, so that tests can simulate time.

use std::time::SystemTime;

use jiff::Timestamp;
use tokio::time::Instant;

/// The clock for timestamps. Code that waits uses tokio's timers instead.
pub trait Clock: Send + Sync + 'static {
    /// Returns the current time.
    fn now(&self) -> Timestamp;
}

/// The system clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::try_from(SystemTime::now()).unwrap_or_default()
    }
}

/// A clock that starts at a fixed time and advances with tokio's clock. If tokio's time is paused, this clock stops
/// too.
#[derive(Debug, Clone, Copy)]
pub struct TokioClock {
    epoch: Timestamp,
    start: Instant,
}

impl TokioClock {
    /// Returns a clock that shows `epoch` now.
    pub fn starting_at(epoch: Timestamp) -> Self {
        Self { epoch, start: Instant::now() }
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        self.epoch.checked_add(self.start.elapsed()).unwrap_or(self.epoch)
    }
}

/// Formats a timestamp as the API does, in whole seconds.
pub(crate) fn text(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Parses a timestamp in the API's format.
pub(crate) fn parse(text: &str) -> Option<Timestamp> {
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn the_tokio_clock_advances_with_paused_time() {
        let clock = TokioClock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
        tokio::time::advance(Duration::from_secs(61)).await;
        assert_eq!(text(clock.now()), "2026-01-01T00:01:01Z");
    }
}
