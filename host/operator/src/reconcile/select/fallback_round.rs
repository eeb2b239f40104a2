//! Decides which policy's answer counts for an object. The predecessor is asked while a policy fails on the object, or
//! refuses the object and leaves it to its predecessor.

use kaos_policy::render::{Rendered, Verdict};

use crate::catalogue::Descent;

/// The answers so far of policies that do not take the object.
pub(crate) struct FallbackRound<A> {
    /// The newest policy that refuses the object and leaves it to its predecessor, with its answer.
    refused: Option<(Descent, A)>,
    /// The answer of the first policy that failed on the object.
    failed: Option<A>,
}

impl<A> FallbackRound<A> {
    /// Starts without any answer.
    pub(crate) fn new() -> Self {
        Self { refused: None, failed: None }
    }

    /// Takes in the answer of the policy that `descent` stands at. Returns the answer that counts, with `descent` at
    /// its policy. Returns `None` if the predecessor, where `descent` stands now, is to be asked. If all policies fail,
    /// the first failure counts, because only the newest policy is in use. `descent` then stays at the last policy.
    pub(crate) fn hear(&mut self, descent: &mut Descent, rendered: &Rendered, answer: A) -> Option<A> {
        if rendered.planned().is_some() {
            return Some(answer);
        }
        let here = descent.clone();
        if descent.after(rendered) {
            if matches!(rendered.verdict, Verdict::Refused(_)) {
                self.refused.get_or_insert((here, answer));
            } else {
                self.failed.get_or_insert(answer);
            }
            return None;
        }
        // No policy takes the object, so the newest refusal counts.
        if let Some((refusing, refused)) = self.refused.take() {
            *descent = refusing;
            return Some(refused);
        }
        match &rendered.verdict {
            // A failure that has nothing to do with the object is gone the next time.
            Verdict::Failed(failure) if !failure.failure.says_nothing_of_the_object() => {
                Some(self.failed.take().unwrap_or(answer))
            }
            _ => Some(answer),
        }
    }
}
