//! Ends a group of processes together. If this process ends, the group ends, too.
//!
//! A guard process leads the process group, and reads from a pipe that this process keeps open. The pipe closes when
//! this process drops the value [`Group`], or when this process ends for any reason, such as a signal. The guard then
//! kills the whole group.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};

/// The guard's script. `$1` is a folder that the guard deletes at the end.
const GUARD: &str = r#"cat >/dev/null; rm -rf "$1"; kill -KILL 0"#;

/// A group of processes that end together.
#[derive(Debug)]
pub struct Group {
    guard: Child,
    id: i32,
}

impl Group {
    /// Creates a group in which only the guard runs. The guard deletes the folder `scratch` at the end.
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
        // Ignore the guard's exit status: the guard always kills itself together with the group.
        let _killed: io::Result<_> = self.guard.wait();
    }
}

/// Sends the signal with this name to the process.
pub fn signal(process: &Child, name: &str) -> Result<()> {
    let sent = Command::new("kill").args([&format!("-{name}"), &process.id().to_string()]).status()?;
    anyhow::ensure!(sent.success(), "kill -{name} {} failed", process.id());
    Ok(())
}
