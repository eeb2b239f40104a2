//! Runs `kaos-operator run` in a separate process.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::time::Duration;

use anyhow::{Context, Result};

use super::programs::Programs;
use super::{ControlPlane, group};
use crate::usage;

/// A process of `kaos-operator run`. Dropping this value stops the process, gracefully if possible.
#[derive(Debug)]
pub struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts an operator in the cluster's process group. The operator serves its HTTP pages on free ports.
    pub fn start(
        cluster: &ControlPlane,
        name: &str,
        kubeconfig: &Path,
        arguments: &[String],
        environment: &[(String, String)],
    ) -> Result<Self> {
        let log = cluster.folder().join(format!("log/{name}.log"));
        let file = File::create(&log)?;
        let mut command = cluster.prepared(&Programs::operator()?, kubeconfig);
        command.args(arguments);
        command.args(["metrics", "health-probe", "debug"].map(|pages| format!("--{pages}-bind-address=127.0.0.1:0")));
        command.envs(environment.iter().cloned()).stdout(file.try_clone()?).stderr(file);
        Ok(Self::of(cluster.group().spawn(&mut command)?, log))
    }

    /// Wraps a running process. `log` is the process's log file.
    pub fn of(child: Child, log: PathBuf) -> Self {
        Self { child, log }
    }

    /// Returns the log so far.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Returns the process ID.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Requests one of the operator's HTTP pages, such as `/metrics`. Returns an empty text if the operator does not
    /// respond.
    pub fn get(&self, page: &str) -> String {
        self.ask(page).unwrap_or_default()
    }

    fn ask(&self, page: &str) -> Result<String> {
        let which = match page {
            "/metrics" => "metrics",
            _ if page.starts_with("/debug/") => "debug",
            _ => "health",
        };
        let address = self.address(which).context("the operator does not serve the page yet")?;
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        write!(stream, "GET {page} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }

    /// Returns the address of a page, or `None` if the log does not contain the address yet. The operator logs the
    /// addresses of its pages at its start.
    fn address(&self, which: &str) -> Option<SocketAddr> {
        let log = self.log();
        let line = log.lines().find(|line| line.contains("serving") && line.contains("health"))?;
        // The log can be text or JSON: a line of text contains `health="127.0.0.1:1"`, and a line of JSON contains
        // `"health":"127.0.0.1:1"`.
        let (_, rest) =
            line.split_once(&format!("{which}=\"")).or_else(|| line.split_once(&format!("{which}\":\"")))?;
        rest.split('"').next()?.parse().ok()
    }

    /// Returns whether `/readyz` reports that the operator is ready.
    pub fn is_ready(&self) -> bool {
        self.get("/readyz").starts_with("HTTP/1.1 200")
    }

    /// Returns whether this operator holds the Lease. Only this operator may write.
    pub fn leads(&self) -> bool {
        self.get("/metrics").contains("kaos_operator_leader 1\n")
    }

    /// Sends the signal with this name to the process.
    pub fn signal(&self, name: &str) -> Result<()> {
        group::signal(&self.child, name)
    }

    /// Returns the exit status, or `None` if the process still runs.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Kills the process immediately, without a clean shutdown.
    pub fn kill(&mut self) {
        // Killing a process fails if the process has already ended. Ignore this error.
        let _ended = self.child.kill().and_then(|()| self.child.wait());
    }

    /// Returns the process's processor time so far, and its peak memory in bytes. `None` if the process has ended.
    pub fn usage(&self) -> Option<(Duration, u64)> {
        Some((usage::own_processor(self.id())?, usage::peak(self.id())?))
    }

    /// Returns the memory that the process occupies now, in bytes. `None` if the process has ended.
    pub fn resident(&self) -> Option<u64> {
        usage::resident(self.id())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Wait until the operator has stopped gracefully and released the Lease. Otherwise the next operator would have
        // to wait until the Lease expires.
        let (beat, patience) = (Duration::from_millis(20), 500);
        if self.ended().is_none() && self.signal("TERM").is_ok() {
            for _ in 0..patience {
                if self.ended().is_some() {
                    return;
                }
                std::thread::sleep(beat);
            }
        }
        self.kill();
    }
}
