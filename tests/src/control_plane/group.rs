//! Processes that end together, and with this one.
//!
//! A guard leads their process group and reads from a pipe that this process holds open. When the pipe closes, because
//! the group was dropped or this process ended, be it by a signal, the guard kills all of them.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};

/// What the guard does: `$1` is the folder that nobody needs afterwards.
const GUARD: &str = r#"cat >/dev/null; rm -rf "$1"; kill -KILL 0"#;

/// Processes that end together.
#[derive(Debug)]
pub struct Group {
    guard: Child,
    id: i32,
}

impl Group {
    /// A group without members. `scratch` is removed at its end.
    pub fn new(scratch: &Path) -> Result<Self> {
        let mut command = Command::new("sh");
        command.args(["-c", GUARD, "guard"]).arg(scratch);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        let guard = command.spawn().context("sh")?;
        let id = i32::try_from(guard.id())?;
        Ok(Self { guard, id })
    }

    /// Starts a process in the group.
    pub fn spawn(&self, command: &mut Command) -> Result<Child> {
        let shown = command.get_program().display().to_string();
        command.process_group(self.id).stdin(Stdio::null()).spawn().context(shown)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        // It ends by its own signal: there is no status worth looking at.
        let _killed: io::Result<_> = self.guard.wait();
    }
}

/// Sends a signal by its name.
pub fn signal(process: &Child, name: &str) -> Result<()> {
    let sent = Command::new("kill").args([&format!("-{name}"), &process.id().to_string()]).status()?;
    anyhow::ensure!(sent.success(), "kill -{name} {} failed", process.id());
    Ok(())
}
