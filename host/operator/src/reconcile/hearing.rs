//! Who is asked about an object, and whose answer counts: what is to answer, and what served before it as long as a policy
//! fails on the object, or refuses it and leaves it to what served before.

use kaos_policy::render::{Rendered, Verdict};

use crate::catalogue::Descent;

/// What was said so far by those who do not take the object.
pub(crate) struct Hearing<A> {
    /// The newest of those that refuse it and leave it to what served before, and its answer.
    refused: Option<(Descent, A)>,
    /// The answer of the first that failed on it.
    failed: Option<A>,
}

impl<A> Hearing<A> {
    /// Nobody was asked yet.
    pub(crate) fn new() -> Self {
        Self { refused: None, failed: None }
    }

    /// Hears what came of asking what answers by a descent. Gives the answer that counts, with the descent at who gave it;
    /// none if what the descent goes on to is to be asked. Where all of them fail the first failure counts, and the descent
    /// stays at the last: nobody serves the object, and only the newest of them is in use.
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
        // Nobody takes the object: what counts is what the newest of those says that refuse it.
        if let Some((refusing, refused)) = self.refused.take() {
            *descent = refusing;
            return Some(refused);
        }
        match &rendered.verdict {
            // One that has nothing to do with the object is over the next time.
            Verdict::Failed(failure) if !failure.failure.says_nothing_of_the_object() => {
                Some(self.failed.take().unwrap_or(answer))
            }
            _ => Some(answer),
        }
    }
}
