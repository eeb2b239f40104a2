//! Decides when the operator looks at the objects of a rollout: at regular intervals, after a swap of policies, and on
//! the request of a person. Between two looks, passes and other packages cause no work for a rollout.

use std::time::Duration;

use kaos_crds::PolicyRollout;
use kaos_policy::rollout::Wait;
use tokio::time::Instant;

use super::{decide::ReturnCause, objects::SightCache, watched::Watched};

/// The maximum time between two looks at the objects of a rollout. A change of the condition `Ready` causes no look.
const LOOK: Duration = Duration::from_secs(10);
/// The minimum time between two looks, for rollouts with short steps.
const SHORT_LOOK: Duration = Duration::from_secs(2);
/// The number of looks in each step, if this keeps the time between two looks between [`SHORT_LOOK`] and [`LOOK`].
const LOOKS: u32 = 10;

/// The facts that one process remembers about an open rollout between two looks.
#[derive(Debug, Default)]
pub(in super::super) struct RolloutLooks {
    pub(super) cache: SightCache,
    /// `None` before the first look at the objects.
    pub(super) watched: Option<Watched>,
    /// The cause if all objects return.
    pub(super) cause: Option<ReturnCause>,
    /// The time of the next look, and the number of the latest swap at the previous look. `None` if a look is due.
    next: Option<(Instant, u64)>,
}

impl RolloutLooks {
    /// Returns the delay until the next look; `None` if the look is due. `swap` is the number of the last swap.
    pub(super) fn wait(&self, swap: u64, now: Instant) -> Option<Duration> {
        let (next, seen) = self.next?;
        (seen == swap && now < next).then(|| next.duration_since(now))
    }

    /// Records that the next look comes after `wait`.
    pub(super) fn looked(&mut self, swap: u64, now: Instant, wait: Duration) {
        self.next = now.checked_add(wait).map(|next| (next, swap));
    }

    /// Forgets the facts about the objects, because the revision does not answer for the objects now.
    pub(super) fn forget(&mut self) {
        (self.watched, self.next) = (None, None);
    }

    /// Makes a look due at once, so that the operator repeats a failed step until it succeeds.
    pub(super) fn repeat(&mut self) {
        self.next = None;
    }
}

/// Returns the time between two looks at the objects of a rollout.
pub(super) fn look(rollout: &PolicyRollout) -> Duration {
    let pause = rollout.pause.parse().map_or(LOOK, |Wait(pause)| pause / LOOKS);
    pause.clamp(SHORT_LOOK, LOOK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_is_due_after_its_time_after_a_swap_and_after_an_error() {
        let (mut looks, now, second) = (RolloutLooks::default(), Instant::now(), Duration::from_secs(1));
        assert_eq!(looks.wait(7, now), None, "the first look");
        looks.looked(7, now, second * 10);
        assert_eq!(looks.wait(7, now + second), Some(second * 9), "passes do not cause a look");
        assert_eq!(looks.wait(8, now + second), None, "another swap");
        assert_eq!(looks.wait(7, now + second * 10), None);
        looks.repeat();
        assert_eq!(looks.wait(7, now + second), None);
    }
}
