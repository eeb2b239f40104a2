//! Waits until the user stops a command.

use std::io;

use tokio::signal::unix::{SignalKind, signal};

/// Waits for Ctrl-C, SIGTERM, or a hangup of the terminal.
pub(super) async fn asked_to_stop() -> io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        interrupt = tokio::signal::ctrl_c() => interrupt,
        _ = terminate.recv() => Ok(()),
        hung_up = hung_up() => hung_up,
    }
}

/// Waits for a hangup of the terminal. Never returns if the process ignores hangups.
async fn hung_up() -> io::Result<()> {
    if outlives_its_terminal() {
        return std::future::pending().await;
    }
    let mut hangup = signal(SignalKind::hangup())?;
    hangup.recv().await;
    Ok(())
}

/// Returns whether the process was started to outlive its terminal, as with `nohup`. Returns false if `/proc` does not
/// contain this information.
fn outlives_its_terminal() -> bool {
    const HANGUP: u64 = 1;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & HANGUP != 0)
}
