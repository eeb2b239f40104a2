//! What was worked out for a question, for the next question about the same.
//!
//! A sandbox lives for one pass, in which a policy is asked several times about one object: what it read of it the
//! first time need not be read again. Only the last is kept, and it is used only where the question is equal, so
//! that no answer depends on what was asked before. Outside of a sandbox nothing is kept: such a process has many
//! objects and many threads.

#[cfg(not(all(target_arch = "wasm32", target_os = "unknown")))]
use alloc::sync::Arc;
#[cfg(any(test, all(target_arch = "wasm32", target_os = "unknown")))]
use {alloc::boxed::Box, core::cell::Cell};

/// What a [`Memo`] gives: in a sandbox it stays until the sandbox ends, with no code that would drop it.
#[cfg(all(target_arch = "wasm32", target_os = "unknown"))]
pub type Kept<T> = &'static T;
/// What a [`Memo`] gives: in a sandbox it stays until the sandbox ends, elsewhere until nobody has it.
#[cfg(not(all(target_arch = "wasm32", target_os = "unknown")))]
pub type Kept<T> = Arc<T>;

/// A place for the last answer to a question of type `K`.
pub struct Memo<K: 'static, T: 'static> {
    #[cfg(all(target_arch = "wasm32", target_os = "unknown"))]
    last: Last<K, T>,
    #[cfg(not(all(target_arch = "wasm32", target_os = "unknown")))]
    last: core::marker::PhantomData<fn(K) -> T>,
}

// SAFETY: a component has one thread.
#[cfg(all(target_arch = "wasm32", target_os = "unknown"))]
unsafe impl<K, T> Sync for Memo<K, T> {}

impl<K: Clone + PartialEq, T> Memo<K, T> {
    /// Nothing yet; meant for a `static`.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "of no use but in a static")]
    pub const fn new() -> Self {
        #[cfg(all(target_arch = "wasm32", target_os = "unknown"))]
        let last = Last::new();
        #[cfg(not(all(target_arch = "wasm32", target_os = "unknown")))]
        let last = core::marker::PhantomData;
        Self { last }
    }

    /// The answer to `question`; `answer` is called unless it is known. Errors are not kept.
    #[cfg_attr(
        not(all(target_arch = "wasm32", target_os = "unknown")),
        allow(clippy::unused_self, reason = "of use in a sandbox only")
    )]
    pub fn get<E>(&self, question: &K, answer: impl FnOnce(&K) -> Result<T, E>) -> Result<Kept<T>, E> {
        #[cfg(all(target_arch = "wasm32", target_os = "unknown"))]
        return self.last.get(question, answer);
        #[cfg(not(all(target_arch = "wasm32", target_os = "unknown")))]
        answer(question).map(Arc::new)
    }
}

impl<K, T> core::fmt::Debug for Memo<K, T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Memo")
    }
}

/// The last question and its answer.
#[cfg(any(test, all(target_arch = "wasm32", target_os = "unknown")))]
struct Last<K: 'static, T: 'static>(Cell<Option<(K, &'static T)>>);

#[cfg(any(test, all(target_arch = "wasm32", target_os = "unknown")))]
impl<K: Clone + PartialEq, T> Last<K, T> {
    const fn new() -> Self {
        Self(Cell::new(None))
    }

    fn get<E>(&self, question: &K, answer: impl FnOnce(&K) -> Result<T, E>) -> Result<&'static T, E> {
        let (asked, known) = match self.0.take() {
            Some((asked, known)) if asked == *question => (asked, known),
            // There are as many as a pass has different questions: a few.
            _ => (question.clone(), &*Box::leak(Box::new(answer(question)?))),
        };
        self.0.set(Some((asked, known)));
        Ok(known)
    }
}

#[cfg(test)]
mod tests {
    use super::Last;

    #[test]
    fn an_answer_is_worked_out_anew_only_for_another_question() {
        let last: Last<String, usize> = Last::new();
        let mut asked = 0;
        let mut ask = |question: &str| {
            let answer = last.get(&question.to_owned(), |question| {
                asked += 1;
                if question.is_empty() { Err("nothing") } else { Ok(question.len()) }
            });
            (answer.copied(), asked)
        };
        assert_eq!(ask("one"), (Ok(3), 1));
        assert_eq!(ask("one"), (Ok(3), 1));
        assert_eq!(ask("three"), (Ok(5), 2));
        assert_eq!(ask("one"), (Ok(3), 3));
        assert_eq!(ask(""), (Err("nothing"), 4));
        assert_eq!(ask(""), (Err("nothing"), 5));
    }
}
