//! Keeps the last computed answer, for the next call about the same input.
//!
//! A sandbox lives for one pass, and the host calls its policy several times about one object. The memo saves the
//! policy from decoding that object again. It keeps only the last answer and returns it only for an equal question, so
//! no answer depends on earlier calls. Outside of a sandbox it keeps nothing: such a process has many objects and many
//! threads.

#[cfg(not(all(target_arch = "wasm32", target_os = "unknown")))]
use alloc::sync::Arc;
#[cfg(any(test, all(target_arch = "wasm32", target_os = "unknown")))]
use {alloc::boxed::Box, core::cell::Cell};

/// The answer of a [`Memo`]. In a sandbox it lives until the sandbox ends, so no code drops it.
#[cfg(all(target_arch = "wasm32", target_os = "unknown"))]
pub type Kept<T> = &'static T;
/// The answer of a [`Memo`]. Outside of a sandbox it is dropped with its last reference.
#[cfg(not(all(target_arch = "wasm32", target_os = "unknown")))]
pub type Kept<T> = Arc<T>;

/// Holds the last answer to a question of type `K`.
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
    /// Creates an empty memo, for a `static`.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "of no use but in a static")]
    pub const fn new() -> Self {
        #[cfg(all(target_arch = "wasm32", target_os = "unknown"))]
        let last = Last::new();
        #[cfg(not(all(target_arch = "wasm32", target_os = "unknown")))]
        let last = core::marker::PhantomData;
        Self { last }
    }

    /// Returns the answer to `question`. Calls `answer` unless the memo has the answer. Does not keep errors.
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
            // Each leak is bounded: a pass asks only a few different questions.
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
