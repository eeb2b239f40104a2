//! Ends a test that never finishes, and prints a message. Simulated time advances only while all tasks wait. So a time
//! limit in simulated time cannot end a loop that never waits.

use std::cell::RefCell;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

thread_local! {
    static LAST_WORDS: RefCell<Option<Box<dyn Fn() -> String>>> = const { RefCell::new(None) };
}

/// Sets the text that the watchdog prints: the result of the function `words`.
pub(super) fn on_bark(words: impl Fn() -> String + 'static) {
    LAST_WORDS.with(|last| *last.borrow_mut() = Some(Box::new(words)));
}

#[derive(Default)]
struct State {
    late: bool,
    over: bool,
    waker: Option<Waker>,
}

/// Runs a test's story. Panics if the story takes longer than `time` in real time.
///
/// # Panics
/// If the time runs out.
#[expect(clippy::panic, reason = "that is how a test fails")]
pub(super) async fn within<T>(time: Duration, story: impl Future<Output = T>) -> T {
    let shared: Arc<(Mutex<State>, Condvar)> = Arc::default();
    let dog = std::thread::spawn({
        let shared = Arc::clone(&shared);
        move || watch(&shared, time)
    });
    let mut story = pin!(story);
    let told = std::future::poll_fn(|context| {
        let late = with(&shared, |state| {
            state.waker = Some(context.waker().clone());
            state.late
        });
        if late {
            return Poll::Ready(None);
        }
        story.as_mut().poll(context).map(Some)
    })
    .await;
    with(&shared, |state| state.over = true);
    shared.1.notify_all();
    drop(dog.join());
    let words = LAST_WORDS.with(|words| words.borrow_mut().take());
    told.unwrap_or_else(|| {
        let words = words.map(|words| words()).unwrap_or_default();
        panic!("the test did not end within {} s of real time\n{words}", time.as_secs())
    })
}

fn watch(shared: &(Mutex<State>, Condvar), time: Duration) {
    let state = shared.0.lock().unwrap_or_else(PoisonError::into_inner);
    let (mut state, _) =
        shared.1.wait_timeout_while(state, time, |state| !state.over).unwrap_or_else(PoisonError::into_inner);
    if !state.over {
        state.late = true;
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    }
}

fn with<T>(shared: &(Mutex<State>, Condvar), look: impl FnOnce(&mut State) -> T) -> T {
    look(&mut shared.0.lock().unwrap_or_else(PoisonError::into_inner))
}
