//! The inputs of a controller besides the state: the time, and the fates of pods.

use jiff::Timestamp;
use tokio::time::Instant;

use super::Fates;
use crate::clock;

/// The inputs of a controller besides the state: the time, and the fates of pods.
pub(crate) struct Moment<'a> {
    pub(crate) now: Timestamp,
    pub(crate) instant: Instant,
    pub(crate) fates: &'a Fates,
}

impl Moment<'_> {
    pub(super) fn text(&self) -> String {
        clock::text(self.now)
    }
}
