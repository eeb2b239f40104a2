//! Decides which policy's answer the pass uses for an object. If a policy fails on the object, or refuses the object
//! and asks for a fallback, the pass asks the predecessor.

use std::sync::Arc;

use kaos_policy::render::{Rendered, Verdict};

use crate::catalogue::{Descent, Kind};

/// Asks the policies in `kind`, and then their predecessors, until a pass could use an answer. Returns this answer, and
/// the policies that gave it. `rendered` returns the rendered object of an answer.
pub(crate) fn decide<A: Clone, E>(
    kind: Arc<Kind>,
    rendered: impl Fn(&A) -> &Rendered,
    mut ask: impl FnMut(&Kind) -> Result<A, E>,
) -> Result<(Descent, A), E> {
    let (mut descent, mut round) = (Descent::new(kind), FallbackRound::new());
    loop {
        let answer = ask(&descent.kind)?;
        if let Some(used) = round.hear(&mut descent, rendered(&answer), answer.clone()) {
            return Ok((descent, used));
        }
    }
}

/// The answers so far of policies that do not accept the object.
pub(crate) struct FallbackRound<A> {
    /// The newest policy that refuses the object and asks for a fallback, with its answer.
    refused: Option<(Descent, A)>,
    /// The answer of the first policy that failed on the object.
    failed: Option<A>,
}

impl<A> FallbackRound<A> {
    /// Starts without any answers.
    pub(crate) fn new() -> Self {
        Self { refused: None, failed: None }
    }

    /// Takes the answer of the policies in `descent`. Returns the answer that the pass uses. Returns `None` if the
    /// caller must ask a predecessor first, and moves `descent` to this predecessor.
    ///
    /// If no asked policy makes a plan, returns the newest refusal that led to a fallback, and moves `descent` back to
    /// the policy of this refusal. Without such a refusal, `descent` stays at the last policy. Then the answer is the
    /// first failure if the last policy failed on the object, and otherwise the last answer.
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
        // No policy accepts the object, so use the newest refusal.
        if let Some((refusing, refused)) = self.refused.take() {
            *descent = refusing;
            return Some(refused);
        }
        match &rendered.verdict {
            // Report the first failure only if this failure is about the object. Any other failure may be over in the
            // next pass.
            Verdict::Failed(failure) if !failure.failure.says_nothing_of_the_object() => {
                Some(self.failed.take().unwrap_or(answer))
            }
            _ => Some(answer),
        }
    }
}
