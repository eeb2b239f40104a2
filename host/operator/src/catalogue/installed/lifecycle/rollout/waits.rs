//! The times of a rollout: the minimum duration of a step, the time for which a moved object may be not ready, and the
//! time for which an object must be ready.

use jiff::SignedDuration;
use kaos_crds::PolicyRollout;
use kaos_policy::rollout::Wait;

/// The longest time for which an object must be ready until it counts for the revision. Pods that crash again and again
/// run for a shorter time: Kubernetes waits at most five minutes between two starts.
const LONGEST_STEADY: SignedDuration = SignedDuration::from_mins(5);

/// The times of a rollout.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waits {
    /// The minimum duration of a step.
    pub(super) pause: SignedDuration,
    /// The time for which a moved object may be not ready.
    pub(super) patience: SignedDuration,
    /// The time for which an object must be ready until it counts for the revision.
    pub(super) steady: SignedDuration,
}

impl Waits {
    pub(super) fn of(rollout: &PolicyRollout) -> Self {
        let [pause, patience] = [&rollout.pause, &rollout.patience].map(|text| duration(text));
        Self { pause, patience, steady: pause.min(LONGEST_STEADY) }
    }
}

/// Parses a duration. An unreadable duration counts as the longest possible one: without evidence, nothing may move.
fn duration(text: &str) -> SignedDuration {
    let wait: Option<Wait> = text.parse().ok();
    wait.and_then(|Wait(wait)| SignedDuration::try_from(wait).ok()).unwrap_or(SignedDuration::MAX)
}
