//! Ends a sandbox that gets no processor: time passes, but the sandbox uses no fuel.
//!
//! Only fuel limits a policy's work. This deadline limits how long a stalled machine can keep a sandbox and its turn to
//! compute. It is so long that no policy reaches it on its own.

use std::{io, thread, time::Duration};

/// The time between two ticks.
const TICK: Duration = Duration::from_secs(5);
/// The most ticks that a sandbox may live.
pub(super) const MOST: u64 = 36;
/// The time limit of a sandbox. A pass uses up its fuel within seconds, or within a minute on a tenth of a processor.
pub(super) const DEADLINE: Duration = Duration::from_secs(TICK.as_secs() * MOST);

/// Starts a thread that ticks until the engine is dropped.
pub(super) fn start(engine: &wasmtime::Engine) -> io::Result<()> {
    let engine = engine.weak();
    let tick = move || {
        while let Some(engine) = engine.upgrade() {
            engine.increment_epoch();
            // Drop the engine before sleeping; otherwise it would live for another tick.
            drop(engine);
            thread::sleep(TICK);
        }
    };
    thread::Builder::new().name("sandbox-clock".to_owned()).spawn(tick).map(drop)
}
