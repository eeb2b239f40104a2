//! The number of attempts at a step, and the delays between them.

use std::time::Duration;

use crate::backoff::Backoff;

/// The delays between attempts while the API server does not answer.
pub(super) const BACKOFF: Backoff = Backoff { first: Duration::from_secs(1), max: Duration::from_mins(1) };

/// If this number of processes ended during the check of one package, the operator assumes that the package is the
/// cause, and refuses the package.
pub(super) const ATTEMPTS: i64 = 3;

/// The delay before the operator retries a step that failed for a reason that only a user can remove.
pub(super) const LOOK_AGAIN: Duration = Duration::from_mins(1);

/// The long delays between attempts to load a policy. An attempt can keep a processor busy for minutes.
pub(super) const LOAD_BACKOFF: Backoff = Backoff { first: LOOK_AGAIN, max: Duration::from_hours(1) };
