//! An operator as a process of its own.

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

/// A process of `kaos-operator run`; stopped when it is dropped, in order if it still can.
#[derive(Debug)]
pub struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts one in the group of a cluster, with pages on free ports.
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

    /// One that was started elsewhere and logs into this file.
    pub fn of(child: Child, log: PathBuf) -> Self {
        Self { child, log }
    }

    /// What it has logged.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Asks one of its pages; an empty text while it does not answer.
    pub fn get(&self, page: &str) -> String {
        self.ask(page).unwrap_or_default()
    }

    fn ask(&self, page: &str) -> Result<String> {
        let which = match page {
            "/metrics" => "metrics",
            _ if page.starts_with("/debug/") => "debug",
            _ => "health",
        };
        let address = self.address(which).context("it does not serve yet")?;
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        write!(stream, "GET {page} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }

    /// Where it said that it serves.
    fn address(&self, which: &str) -> Option<SocketAddr> {
        let log = self.log();
        let line = log.lines().find(|line| line.contains("serving") && line.contains("health"))?;
        // As text it is `health="127.0.0.1:1"`, as JSON `"health":"127.0.0.1:1"`.
        let (_, rest) =
            line.split_once(&format!("{which}=\"")).or_else(|| line.split_once(&format!("{which}\":\"")))?;
        rest.split('"').next()?.parse().ok()
    }

    /// Whether it says that it is ready.
    pub fn is_ready(&self) -> bool {
        self.get("/readyz").starts_with("HTTP/1.1 200")
    }

    /// Whether it is the one that writes.
    pub fn leads(&self) -> bool {
        self.get("/metrics").contains("kaos_operator_leader 1\n")
    }

    /// Sends a signal by its name.
    pub fn signal(&self, name: &str) -> Result<()> {
        group::signal(&self.child, name)
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Ends it at once, in the middle of whatever it does.
    pub fn kill(&mut self) {
        // One that has ended cannot be killed, and that is well.
        let _ended = self.child.kill().and_then(|()| self.child.wait());
    }

    /// Its processor time so far, and its peak memory in bytes.
    pub fn usage(&self) -> Option<(Duration, u64)> {
        Some((usage::own_processor(self.id())?, usage::peak(self.id())?))
    }

    /// Bytes of it that are in memory now.
    pub fn resident(&self) -> Option<u64> {
        usage::resident(self.id())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It releases the Lease, which the next one would wait for otherwise.
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
