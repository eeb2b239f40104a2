//! Mutexes that a panic elsewhere does not close: a policy, a pass or a page that goes wrong takes nobody else with it.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a mutex guards, also after somebody panicked who held it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
