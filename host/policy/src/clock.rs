//! The clock, as a parameter of code that measures time.

use std::time::{Duration, Instant};

/// A clock that never goes back. Only differences between two times have a meaning.
pub trait Clock: Send + Sync {
    /// Returns the time since a fixed moment.
    fn now(&self) -> Duration;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock(Instant);

impl SystemClock {
    /// Starts a clock at zero.
    pub fn start() -> Self {
        Self(Instant::now())
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }
}

impl<C: Clock + ?Sized> Clock for &C {
    fn now(&self) -> Duration {
        (**self).now()
    }
}
