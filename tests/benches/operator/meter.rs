//! Runs the operator as a separate process, and reads its metrics and its resource usage.

use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use kaos_tests::case;
use kaos_tests::control_plane::group::Group;
use kaos_tests::control_plane::process::Process;
use kaos_tests::harness::read::counted;

/// The time between two polls.
const BEAT: Duration = Duration::from_millis(250);
/// If the operator makes no pass and sends no request except watches for this time, the bench treats the operator as
/// idle.
const STILL: Duration = Duration::from_secs(3);
/// The time limit for two waits: until the operator is idle, and until it has ended.
const PATIENCE: Duration = Duration::from_mins(20);

/// A running operator, to be measured.
pub(crate) struct Meter {
    process: Process,
    start: Instant,
}

/// The values of the operator's counters at one time.
#[derive(Debug, Clone)]
pub(crate) struct Reading {
    start: Instant,
    at: Instant,
    cpu: Duration,
    page: String,
}

/// The difference between two readings.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    pub(crate) wall: Duration,
    pub(crate) cpu: Duration,
    /// Passes over objects of all kinds. The next field has the passes over Agents.
    pub(crate) passes: f64,
    pub(crate) passes_of_agents: f64,
    /// Answers of policies.
    pub(crate) answers: f64,
    /// Write requests, including dry runs but without Events.
    pub(crate) writes: f64,
    pub(crate) events: f64,
    /// Requests that read objects or discover types.
    pub(crate) reads: f64,
    pub(crate) watches: f64,
}

impl Meter {
    /// Starts an operator. The operator ends when the process group ends.
    pub(crate) fn start(group: &Group, folder: &Path, kubeconfig: &Path) -> Result<Self> {
        let log = folder.join("operator.log");
        let file = File::create(&log)?;
        let mut command = Command::new(std::env::current_exe()?);
        command.env_clear().envs(case::default_environment()?).arg("run").arg("--kubeconfig").arg(kubeconfig);
        command.args(["--log-level", "warn,kaos_operator::cli=info"]);
        command.args(["--metrics-bind-address=127.0.0.1:0", "--health-probe-bind-address=127.0.0.1:0"]);
        command.arg("--debug-bind-address=0");
        command.stdout(file.try_clone()?).stderr(file);
        let start = Instant::now();
        Ok(Self { process: Process::of(group.spawn(&mut command)?, log), start })
    }

    /// Reads the current counters.
    pub(crate) fn read(&self) -> Result<Reading> {
        let (cpu, _) = self.process.usage().context("the operator has ended")?;
        Ok(Reading { start: self.start, at: Instant::now(), cpu, page: self.process.get("/metrics") })
    }

    /// Waits until `agents` Agents are ready and the operator is idle. Returns the counters as they were at the
    /// beginning of the idle time.
    pub(crate) async fn settled(&mut self, agents: usize) -> Result<Reading> {
        let deadline = Instant::now() + PATIENCE;
        let mut last = self.read()?;
        loop {
            tokio::time::sleep(BEAT).await;
            if let Some(status) = self.process.ended() {
                bail!("the operator ended: {status}\n{}", self.process.log());
            }
            let now = self.read()?;
            if !self.process.is_ready() || !now.is_idle(agents) || now.work() != last.work() {
                last = now;
            } else if last.at.elapsed() >= STILL {
                return Ok(last);
            }
            if Instant::now() >= deadline {
                bail!("the operator does not become idle\n{log}\n{page}", log = self.process.log(), page = last.page);
            }
        }
    }

    /// Ends the operator as Kubernetes ends a pod, and waits for its end.
    pub(crate) async fn end(mut self) -> Result<()> {
        self.process.signal("TERM")?;
        let deadline = Instant::now() + PATIENCE;
        while self.process.ended().is_none() {
            if Instant::now() >= deadline {
                bail!("the operator does not end\n{}", self.process.log());
            }
            tokio::time::sleep(BEAT).await;
        }
        Ok(())
    }

    /// Returns the memory in use now, and the peak memory, in bytes.
    pub(crate) fn memory(&self) -> Result<(u64, u64)> {
        let (_, peak) = self.process.usage().context("the operator has ended")?;
        Ok((self.process.resident().context("the operator has ended")?, peak))
    }
}

impl Reading {
    fn count(&self, metric: &str, labels: &[&str]) -> f64 {
        counted(&self.page, metric, labels)
    }

    /// Returns the number of passes and the number of requests so far. Does not count watches, because an idle operator
    /// keeps its watches open.
    fn work(&self) -> (f64, f64) {
        (self.passes(""), self.calls(&["get", "list", "create", "update", "patch", "delete"], ""))
    }

    fn is_idle(&self, agents: usize) -> bool {
        let ready = self.count("kaos_operator_objects", &["kind=\"Agent\"", "ready=\"true\""]);
        ready >= number(agents) && self.count("kaos_operator_queue_depth", &[]) < 1.0
    }

    fn passes(&self, kind: &str) -> f64 {
        self.count("kaos_operator_passes_total", &[kind])
    }

    fn calls(&self, verbs: &[&str], also: &str) -> f64 {
        let verb = |verb: &&str| self.count("kaos_operator_api_calls_total", &[&format!("verb=\"{verb}\""), also]);
        verbs.iter().map(verb).sum()
    }

    /// Returns the number of objects in the operator's memory, and the size of their text in bytes.
    pub(crate) fn stored(&self) -> (f64, f64) {
        (self.count("kaos_operator_stored_objects", &[]), self.count("kaos_operator_stored_bytes", &[]))
    }

    /// Returns how much the counters have grown since the start of the process.
    pub(crate) fn since_start(&self) -> Span {
        let start = Self { start: self.start, at: self.start, cpu: Duration::ZERO, page: String::new() };
        self.since(&start)
    }

    /// Returns how much the counters have grown since an earlier reading.
    pub(crate) fn since(&self, before: &Self) -> Span {
        let changing = ["create", "update", "patch", "delete"];
        let grown = |ask: &dyn Fn(&Self) -> f64| ask(self) - ask(before);
        let events = grown(&|it| it.calls(&changing, "resource=\"events\""));
        // Do not count access reviews as writes: they only ask about rights, and the API server does not store them.
        let reviews = grown(&|it| it.calls(&changing, "group=\"authorization.k8s.io\""));
        Span {
            wall: self.at - before.at,
            cpu: self.cpu.saturating_sub(before.cpu),
            passes: grown(&|it| it.passes("")),
            passes_of_agents: grown(&|it| it.passes("kind=\"Agent\"")),
            answers: grown(&|it| it.count("kaos_operator_policy_answers_total", &[])),
            writes: grown(&|it| it.calls(&changing, "")) - events - reviews,
            events,
            reads: grown(&|it| it.calls(&["get", "list"], "")),
            watches: grown(&|it| it.calls(&["watch"], "")),
        }
    }
}

#[allow(clippy::cast_precision_loss, reason = "fleets are small")]
pub(crate) fn number(count: usize) -> f64 {
    count as f64
}
