//! Converts wasmtime's errors to typed failures.

use std::str::Utf8Error;

use wasmtime::{Store, Trap};

use super::{last_words, progress, state::State, ticks};
use crate::{
    failure::{Failure, Verb},
    limits::Limits,
};

/// The message of wasmtime's error for an answer that is too large. wasmtime does not export the type of this error.
const ANSWER_TOO_LARGE: &str = "fuel allocated for hostcalls has been exhausted";

pub(super) fn failure(store: &mut Store<State>, limits: &Limits, verb: Verb, error: &wasmtime::Error) -> Failure {
    if store.data().runs_script {
        store.data_mut().progress = progress::of(store, error);
    }
    if let Some(wanted) = store.data().denied {
        return Failure::OutOfMemory { verb, at: None, wanted, limit: store.data().memory_limit() };
    }
    if let Some(trap) = error.downcast_ref::<Trap>() {
        return match trap {
            Trap::OutOfFuel => Failure::OutOfFuel { verb, at: None, limit: limits.fuel },
            Trap::Interrupt => Failure::Stalled { verb, seconds: ticks::DEADLINE.as_secs() },
            trap => {
                let reason = last_words::of(store, error).unwrap_or_else(|| trap.to_string());
                Failure::Trap { verb, reason }
            }
        };
    }
    if error.downcast_ref::<Utf8Error>().is_some() {
        return Failure::NotUtf8 { verb };
    }
    let reason = format!("{error:#}");
    if reason.contains(ANSWER_TOO_LARGE) {
        return Failure::AnswerTooLarge { verb, limit: limits.answer_bytes };
    }
    if verb == Verb::Open {
        return Failure::Sandbox(reason);
    }
    Failure::Malformed { verb, reason }
}
