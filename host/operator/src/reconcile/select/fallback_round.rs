//! Decides which policy's answer the pass uses for an object. If a policy fails on the object, or if its refusal
//! requests a fallback, the pass asks the predecessor.

use std::sync::Arc;

use kaos_policy::render::{Rendered, Verdict};

use crate::catalogue::{Descent, Kind};

/// Asks the policies in `kind`, and then their predecessors, until there is an answer that a pass would use. Returns
/// this answer, and the policies that gave it. The function `rendered` returns the rendered object of an answer.
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

/// The answers so far, of policies that did not make a plan for the object.
pub(crate) struct FallbackRound<A> {
    /// The newest policies whose refusal requests a fallback, with this refusal.
    refused: Option<(Descent, A)>,
    /// The answer of the first policy that failed on the object.
    failed: Option<A>,
}

impl<A> FallbackRound<A> {
    /// Starts without any answers.
    pub(crate) fn new() -> Self {
        Self { refused: None, failed: None }
    }

    /// Takes the answer of the policies in `descent`, and returns the answer that the pass uses. If the caller must ask
    /// the predecessor first, moves `descent` to the predecessor, and returns `None`.
    ///
    /// If no policy makes a plan, the pass uses the newest refusal that requested a fallback, and `descent` moves back
    /// to its policies. Without such a refusal, `descent` stays at the last policies. Then the pass uses the first
    /// failure if the last policies failed on the object too, and otherwise the last answer.
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
        // No policy makes a plan, so use the newest refusal that requested a fallback.
        if let Some((refusing, refused)) = self.refused.take() {
            *descent = refusing;
            return Some(refused);
        }
        match &rendered.verdict {
            // Use the first failure only if the last failure is about the object too. Otherwise, the next pass may
            // succeed.
            Verdict::Failed(failure) if !failure.failure.says_nothing_of_the_object() => {
                Some(self.failed.take().unwrap_or(answer))
            }
            _ => Some(answer),
        }
    }
}
