//! The inputs of a controller, except the state.

use jiff::Timestamp;
use tokio::time::Instant;

use super::Fates;
use crate::clock;

/// The inputs of a controller, except the state.
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
