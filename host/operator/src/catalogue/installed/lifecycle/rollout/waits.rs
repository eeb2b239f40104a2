//! The times of a rollout: the minimum duration of a step, the time for which a moved object may be not ready, and the
//! time for which an object must be ready.

use jiff::SignedDuration;
use kaos_crds::PolicyRollout;
use kaos_policy::rollout::Wait;

/// The upper limit for the time for which an object must be ready until it counts as good. Five minutes is also the
/// longest time that Kubernetes waits before it restarts a crashed container. Containers that crash again and again
/// usually run for a shorter time.
const LONGEST_STEADY: SignedDuration = SignedDuration::from_mins(5);

/// The times of a rollout.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waits {
    /// The minimum duration of a step.
    pub(super) pause: SignedDuration,
    /// The time for which a moved object may be not ready.
    pub(super) patience: SignedDuration,
    /// The time for which an object must be ready until it counts as good.
    pub(super) steady: SignedDuration,
}

impl Waits {
    pub(super) fn of(rollout: &PolicyRollout) -> Self {
        let [pause, patience] = [&rollout.pause, &rollout.patience].map(|text| duration(text));
        Self { pause, patience, steady: pause.min(LONGEST_STEADY) }
    }
}

/// Parses a duration. Returns the longest possible duration for an unreadable text, so that no object moves too early.
fn duration(text: &str) -> SignedDuration {
    let wait: Option<Wait> = text.parse().ok();
    wait.and_then(|Wait(wait)| SignedDuration::try_from(wait).ok()).unwrap_or(SignedDuration::MAX)
}
