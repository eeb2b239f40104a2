//! Starts, monitors, kills and restarts the processes of a cluster.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::Group;
use crate::usage;

/// The processes of a cluster.
#[derive(Debug, Default)]
pub(super) struct Parts(Vec<Part>);

#[derive(Debug)]
struct Part {
    name: &'static str,
    program: PathBuf,
    flags: Vec<String>,
    log: PathBuf,
    child: Child,
}

impl Parts {
    /// Starts a part.
    pub(super) fn start(
        &mut self,
        group: &Group,
        folder: &Path,
        name: &'static str,
        program: PathBuf,
        flags: Vec<String>,
    ) -> Result<()> {
        let log = folder.join(format!("log/{name}.log"));
        let child = spawn(group, &program, &flags, &log)?;
        self.0.push(Part { name, program, flags, log, child });
        Ok(())
    }

    pub(super) fn running(&mut self) -> Result<Vec<&'static str>> {
        let mut running = Vec::new();
        for part in &mut self.0 {
            if part.child.try_wait()?.is_none() {
                running.push(part.name);
            }
        }
        Ok(running)
    }

    /// Returns the processor time that all parts have used.
    pub(super) fn processor(&self) -> Duration {
        self.0.iter().filter_map(|part| usage::processor(part.child.id())).sum()
    }

    /// Fails if a part has ended. The error contains the last lines of the part's log.
    pub(super) fn check(&mut self) -> Result<()> {
        for part in &mut self.0 {
            if let Some(status) = part.child.try_wait()? {
                let log = fs::read_to_string(&part.log).unwrap_or_default();
                let lines: Vec<&str> = log.lines().collect();
                bail!("{} ended: {status}\n{}", part.name, lines[lines.len().saturating_sub(8)..].join("\n"));
            }
        }
        Ok(())
    }

    /// Kills a part immediately, without a clean shutdown.
    pub(super) fn kill(&mut self, name: &str) -> Result<()> {
        let part = self.get(name)?;
        // Killing a process fails if the process has already ended. Ignore this error.
        let _ended = part.child.kill().and_then(|()| part.child.wait());
        Ok(())
    }

    /// Starts a killed part again with the same flags.
    pub(super) fn revive(&mut self, group: &Group, name: &str) -> Result<()> {
        let part = self.get(name)?;
        part.child = spawn(group, &part.program, &part.flags, &part.log)?;
        Ok(())
    }

    fn get(&mut self, name: &str) -> Result<&mut Part> {
        self.0.iter_mut().find(|part| part.name == name).with_context(|| format!("the cluster has no {name}"))
    }
}

fn spawn(group: &Group, program: &Path, flags: &[String], log: &Path) -> Result<Child> {
    let log = OpenOptions::new().create(true).append(true).open(log)?;
    let mut command = Command::new(program);
    command.args(flags).stdout(log.try_clone()?).stderr(log);
    group.spawn(&mut command)
}

impl Drop for Parts {
    fn drop(&mut self) {
        for part in &mut self.0 {
            // Killing a process fails if the process has already ended. Ignore this error.
            let _ended = part.child.kill().and_then(|()| part.child.wait());
        }
    }
}
