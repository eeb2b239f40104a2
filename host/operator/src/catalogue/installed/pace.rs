//! How often a step is tried, and how long the operator waits in between.

use std::time::Duration;

/// The minimum and maximum delay between two attempts while the API server does not answer.
pub(super) const PATIENCE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(1));

/// The number of processes that may end during the check of a package before the package counts as the cause.
pub(super) const ATTEMPTS: i64 = 3;

/// The delay before the operator looks again at a problem that only a user can solve.
pub(super) const LOOK_AGAIN: Duration = Duration::from_mins(1);
