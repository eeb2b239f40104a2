//! Handles SIGTERM and Ctrl-C. After the first signal, the process finishes its passes and stops. After the second
//! signal, the process stops immediately.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

/// The exit code that a shell reports for a program ended by Ctrl-C.
const AT_ONCE: i32 = 130;

/// Cancels `stop` on the first signal.
pub(super) fn stop_on_signals(stop: CancellationToken) -> io::Result<()> {
    let (terminate, interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tokio::spawn(follow(terminate, interrupt, stop));
    Ok(())
}

async fn follow(mut terminate: Signal, mut interrupt: Signal, stop: CancellationToken) {
    loop {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        if stop.is_cancelled() {
            warn!("stopping at once: running passes are aborted, and the Lease expires without a release");
            std::process::exit(AT_ONCE);
        }
        info!("stopping: running passes finish first; a second signal stops at once");
        stop.cancel();
    }
}
