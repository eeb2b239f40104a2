//! Who is asked about an object, and whose answer counts: what is to answer, and what served before it as long as a policy
//! fails on the object, or refuses it and leaves it to what served before.

use kaos_policy::render::{Rendered, Verdict};

use crate::catalogue::Descent;

/// What was said so far by those who do not take the object.
pub(crate) struct Hearing<A> {
    /// The newest of those that refuse it and leave it to what served before, and its answer.
    refused: Option<(Descent, A)>,
}

impl<A> Hearing<A> {
    /// Nobody was asked yet.
    pub(crate) fn new() -> Self {
        Self { refused: None }
    }

    /// Hears what came of asking what answers by a descent. Gives the answer that counts, with the descent at who gave it;
    /// none if what the descent goes on to is to be asked.
    pub(crate) fn hear(&mut self, descent: &mut Descent, rendered: &Rendered, answer: A) -> Option<A> {
        if rendered.planned().is_some() {
            return Some(answer);
        }
        let here = descent.clone();
        if descent.after(rendered) {
            if matches!(rendered.verdict, Verdict::Refused(_)) {
                self.refused.get_or_insert((here, answer));
            }
            return None;
        }
        // Nobody takes the object: what counts is what the newest of those says that refuse it.
        let Some((refusing, refused)) = self.refused.take() else { return Some(answer) };
        *descent = refusing;
        Some(refused)
    }
}
