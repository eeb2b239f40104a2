//! A meter of one quantity: what was used in the last minute, and until when the limit is used up.

use std::time::Duration;

use tokio::time::Instant;

/// The period of each limit.
const MINUTE: Duration = Duration::from_mins(1);
/// The maximum time that one use adds to `paid_until`, so that no sum of times overflows.
const DAY: Duration = Duration::from_hours(24);

/// A meter of fuel or passes.
///
/// The limit is a rate. Each use moves `paid_until` forward by the time in which the limit allows the used amount. The
/// limit allows a further amount if `paid_until` would then be at most one minute in the future. So after an unused
/// minute, the whole limit of a minute is available at once.
#[derive(Debug)]
pub(super) struct Meter {
    paid_until: Instant,
    /// The start of the current minute.
    began: Instant,
    in_current: u64,
    in_previous: u64,
}

impl Meter {
    pub(super) fn new(now: Instant) -> Self {
        Self { paid_until: now, began: now, in_current: 0, in_previous: 0 }
    }

    /// Returns the time from which the limit allows this amount. `None` without a limit. If the amount exceeds the
    /// limit of a minute, returns `paid_until`.
    pub(super) fn room_at(&self, amount: u64, limit: Option<u64>) -> Option<Instant> {
        limit?;
        self.paid_until.checked_sub(MINUTE.saturating_sub(Self::time_of(amount, limit)))
    }

    pub(super) fn pay(&mut self, now: Instant, amount: u64, limit: Option<u64>) {
        self.paid_until = self.paid_until.max(now) + Self::time_of(amount, limit);
    }

    pub(super) fn count(&mut self, now: Instant, amount: u64) {
        self.roll(now);
        self.in_current = self.in_current.saturating_add(amount);
    }

    /// Returns what was used in the last minute. Assumes that the use was evenly spread over the previous minute.
    pub(super) fn in_last_minute(&self, now: Instant) -> u64 {
        let elapsed = now.saturating_duration_since(self.began);
        let (current, previous, end) = match elapsed {
            _ if elapsed < MINUTE => (self.in_current, self.in_previous, MINUTE),
            _ if elapsed < 2 * MINUTE => (0, self.in_current, 2 * MINUTE),
            _ => return 0,
        };
        let left = u128::from(previous) * end.saturating_sub(elapsed).as_millis() / MINUTE.as_millis();
        current.saturating_add(u64::try_from(left).unwrap_or(u64::MAX))
    }

    pub(super) fn is_unused(&self, now: Instant) -> bool {
        self.paid_until <= now && self.in_last_minute(now) == 0
    }

    /// Returns the time in which the limit allows this amount. Zero without a limit.
    pub(super) fn time_of(amount: u64, limit: Option<u64>) -> Duration {
        let Some(limit) = limit else { return Duration::ZERO };
        let nanos = u128::from(amount) * MINUTE.as_nanos() / u128::from(limit.max(1));
        u64::try_from(nanos).map_or(DAY, |nanos| Duration::from_nanos(nanos).min(DAY))
    }

    /// Begins a new minute if the current one is over.
    fn roll(&mut self, now: Instant) {
        let minutes = now.saturating_duration_since(self.began).as_secs() / MINUTE.as_secs();
        if minutes > 0 {
            self.in_previous = if minutes == 1 { self.in_current } else { 0 };
            self.in_current = 0;
            self.began += MINUTE * u32::try_from(minutes).unwrap_or(u32::MAX);
        }
    }
}
