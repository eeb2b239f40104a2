//! Ends a sandbox that time goes by for although it does not use up its fuel: nobody gives it a processor.
//!
//! Fuel alone bounds what a policy does. This bounds how long a sandbox, and the turn to compute that goes with it, can be
//! kept by a machine that has come to a halt; it is so much longer that no policy comes to it by itself.

use std::{io, thread, time::Duration};

/// Between two ticks.
const TICK: Duration = Duration::from_secs(5);
/// Ticks that a sandbox lives at most.
pub(super) const MOST: u64 = 36;
/// The time that they take. The fuel of a pass is used up within seconds, with a tenth of a processor within a minute.
pub(super) const DEADLINE: Duration = Duration::from_secs(TICK.as_secs() * MOST);

/// Ticks until the engine is gone.
pub(super) fn start(engine: &wasmtime::Engine) -> io::Result<()> {
    let engine = engine.weak();
    let tick = move || {
        while let Some(engine) = engine.upgrade() {
            engine.increment_epoch();
            // Else the engine would stay for another tick.
            drop(engine);
            thread::sleep(TICK);
        }
    };
    thread::Builder::new().name("sandbox-clock".to_owned()).spawn(tick).map(drop)
}
