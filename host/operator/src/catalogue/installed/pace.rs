//! How often something is tried, and how long nothing is done in between.

use std::time::Duration;

/// Between two tries after the API server did not answer, at least and at most.
pub(super) const PATIENCE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(1));

/// Processes that may end while they check a package before it counts as the reason.
pub(super) const ATTEMPTS: i64 = 3;

/// When something that only others can change is looked at again.
pub(super) const LOOK_AGAIN: Duration = Duration::from_mins(1);
