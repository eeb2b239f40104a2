//! Ends a sandbox that gets no processor. A sandbox without a processor uses no fuel, so the fuel limit cannot end it.
//!
//! Fuel limits a policy's work. The deadline of this module only limits how long a sandbox blocks other passes while
//! the machine stalls. On a working machine, no pass reaches this deadline. Only the sandbox of a preview can reach the
//! deadline, if passes use all processors for minutes. Then the operator computes the effect on the preview's object
//! again.

use std::{io, thread, time::Duration};

/// The time between two ticks.
const TICK: Duration = Duration::from_secs(5);
/// The maximum lifetime of a sandbox, as a number of ticks.
pub(super) const MAX_TICKS: u64 = 36;
/// The time limit of a sandbox. A pass uses up its fuel within seconds. With a tenth of a processor, a pass takes up to
/// a minute.
pub(super) const DEADLINE: Duration = Duration::from_secs(TICK.as_secs() * MAX_TICKS);

/// Starts a thread that ticks until the engine is dropped.
pub(super) fn start(engine: &wasmtime::Engine) -> io::Result<()> {
    let engine = engine.weak();
    let tick = move || {
        while let Some(engine) = engine.upgrade() {
            engine.increment_epoch();
            // Drop the engine before sleeping. If this thread kept the engine during its sleep, the engine would exist
            // for another tick.
            drop(engine);
            thread::sleep(TICK);
        }
    };
    thread::Builder::new().name("sandbox-clock".to_owned()).spawn(tick).map(drop)
}
