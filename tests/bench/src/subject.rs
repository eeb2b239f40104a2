//! Runs an operator as a process.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use kaos_tests::control_plane::group;
use kaos_tests::control_plane::launch::free_port;

use crate::stage::Stage;
use crate::tree::{self, Usage};

/// The time between two samples of the resource usage. The time is short because compile children live for only a
/// second.
const BEAT: Duration = Duration::from_millis(25);
const PATIENCE: Duration = Duration::from_mins(1);
/// The metric that counts passes, under the names that different operators use.
const PASSES: [&str; 2] = ["kaos_operator_passes_total", "controller_runtime_reconcile_total"];

/// A running operator. When this value is dropped, the process is killed.
pub(crate) struct Subject {
    child: Child,
    started: Instant,
    /// The address of the health page, if the command contains the address.
    health: Option<SocketAddr>,
    metrics: Option<SocketAddr>,
    log: PathBuf,
    seen: Arc<Mutex<Usage>>,
    ended: Arc<AtomicBool>,
}

impl Subject {
    /// Starts an operator.
    pub(crate) fn start(stage: &Stage, command: &str) -> Result<Self> {
        ensure!(
            !command.contains("$ARGUMENTS") || !stage.arguments().is_empty(),
            "the manifests have no Deployment with arguments, so the command cannot use $ARGUMENTS"
        );
        let (health, metrics) = (free()?, free()?);
        let log = stage.folder().join("operator.log");
        let file = File::options().create(true).append(true).open(&log)?;
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("exec {command}")]).env_clear();
        shell.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", stage.folder());
        shell.env("KUBECONFIG", stage.kubeconfig()).envs(stage.environment().iter().cloned());
        shell.env("HEALTH", health.to_string()).env("METRICS", metrics.to_string());
        shell.env("ARGUMENTS", stage.arguments());
        shell.stdout(file.try_clone()?).stderr(file);
        let started = Instant::now();
        let child = stage.group().spawn(&mut shell)?;
        let (seen, ended) = (Arc::new(Mutex::new(Usage::default())), Arc::new(AtomicBool::new(false)));
        watch(child.id(), Arc::clone(&seen), Arc::clone(&ended));
        let named = |variable: &str, address| command.contains(variable).then_some(address);
        let (health, metrics) = (named("$HEALTH", health), named("$METRICS", metrics));
        Ok(Self { child, started, health, metrics, log, seen, ended })
    }

    /// Waits until the operator's health page reports that the operator is ready. Returns the time since the start.
    /// Returns `None` if the operator has no health page.
    pub(crate) fn until_ready(&mut self) -> Result<Option<Duration>> {
        let Some(health) = self.health else { return Ok(None) };
        while !get(health, "/readyz").is_some_and(|answer| answer.starts_with("HTTP/1.1 200")) {
            self.check()?;
            if self.started.elapsed() > PATIENCE {
                bail!("the operator does not become ready\n{log}", log = self.last_words());
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(Some(self.started.elapsed()))
    }

    /// Fails if the process has ended.
    pub(crate) fn check(&mut self) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!("the operator ended: {status}\n{}", self.last_words());
        }
        Ok(())
    }

    /// Returns the operator's processor time so far, and its peak memory.
    pub(crate) fn usage(&self) -> Usage {
        if let Some(now) = tree::usage(self.child.id()) {
            note(&self.seen, now);
        }
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of passes, or `None` if the operator has no metric for passes.
    pub(crate) fn passes(&self) -> Option<f64> {
        let page = get(self.metrics?, "/metrics")?;
        let counts = page.lines().filter(|line| PASSES.iter().any(|name| line.starts_with(name)));
        counts.map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
    }

    /// Returns the size of the operator's program in bytes.
    pub(crate) fn size(&self) -> Result<u64> {
        Ok(fs::metadata(format!("/proc/{}/exe", self.child.id()))?.len())
    }

    /// Kills the operator and all its descendants.
    pub(crate) fn kill(mut self) {
        self.end();
    }

    /// Stops the operator gracefully.
    pub(crate) fn stop(mut self) -> Result<()> {
        group::signal(&self.child, "TERM")?;
        let deadline = Instant::now() + PATIENCE;
        while self.child.try_wait()?.is_none() {
            if Instant::now() > deadline {
                bail!("the operator does not end\n{}", self.last_words());
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    fn end(&mut self) {
        let below = tree::below(self.child.id());
        // Killing a process fails if the process has already ended. Ignore this error.
        let _ended = self.child.kill().and_then(|()| self.child.wait());
        for child in below {
            let _ended = Command::new("kill").args(["-KILL", &child.to_string()]).output();
        }
        self.ended.store(true, Ordering::Relaxed);
    }

    fn last_words(&self) -> String {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(12)..].join("\n")
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        self.end();
    }
}

/// Samples the resource usage of a process until `ended` is set.
fn watch(process: u32, seen: Arc<Mutex<Usage>>, ended: Arc<AtomicBool>) {
    thread::spawn(move || {
        while !ended.load(Ordering::Relaxed) {
            if let Some(now) = tree::usage(process) {
                note(&seen, now);
            }
            thread::sleep(BEAT);
        }
    });
}

fn note(seen: &Mutex<Usage>, now: Usage) {
    let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    *seen = Usage {
        processor: seen.processor.max(now.processor),
        peak: seen.peak.max(now.peak),
        peaks: seen.peaks.max(now.peaks),
    };
}

fn free() -> Result<SocketAddr> {
    Ok(SocketAddr::from(([127, 0, 0, 1], free_port()?)))
}

/// Requests a page. Returns `None` if the operator does not serve the page yet.
fn get(address: SocketAddr, page: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    write!(stream, "GET {page} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}
