//! Runs the operator as a process. When the operator ends, starts another one, as a kubelet does.

use std::path::PathBuf;
use std::time::Duration;

use fastrand::Rng;
use kaos_tests::control_plane::{ControlPlane, Pod, Process};
use tokio::time::{Instant, sleep};

/// Flags that make the Lease expire soon, so that many operators hold the Lease one after the other during a run.
const SHORT: [&str; 3] =
    ["--leader-elect-lease-duration=3s", "--leader-elect-renew-deadline=2s", "--leader-elect-retry-period=500ms"];
const BEAT: Duration = Duration::from_millis(50);

/// Keeps an operator running.
pub(crate) struct Keeper<'c> {
    cluster: &'c ControlPlane,
    pod: Pod,
    kubeconfig: PathBuf,
    process: Option<Process>,
    /// How many operators the keeper has started.
    pub(crate) started: usize,
    /// How many operators have ended by themselves.
    pub(crate) ended: usize,
    /// A message for each operator that panicked, or ended by itself with another exit code than 1.
    pub(crate) wrong: Vec<String>,
}

impl<'c> Keeper<'c> {
    /// Creates a keeper that starts operators like the container of `pod`.
    pub(crate) fn new(cluster: &'c ControlPlane, pod: Pod, kubeconfig: PathBuf) -> Self {
        Self { cluster, pod, kubeconfig, process: None, started: 0, ended: 0, wrong: Vec::new() }
    }

    /// Starts an operator, usually with leader election.
    pub(crate) fn start(&mut self, rng: &mut Rng) {
        self.started += 1;
        let name = format!("operator-{}", self.started);
        let mut flags: Vec<String> = self.pod.arguments_in(self.cluster.folder()).unwrap();
        flags.push("--request-deadline=3s".to_owned());
        if rng.u8(..3) == 0 {
            flags.retain(|flag| flag != "--leader-elect");
        } else {
            flags.extend(SHORT.map(ToOwned::to_owned));
        }
        let started = Process::start(self.cluster, &name, &self.kubeconfig, &flags, &self.pod.environment);
        self.process = Some(started.unwrap());
    }

    /// Kills the operator immediately.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill();
        }
    }

    /// Stops the operator gracefully.
    pub(crate) fn stop(&mut self) {
        drop(self.process.take());
    }

    /// Waits for `time`. Starts another operator whenever the operator ends.
    pub(crate) async fn pass(&mut self, time: Duration, rng: &mut Rng) {
        let end = Instant::now() + time;
        loop {
            if let Some(process) = &mut self.process
                && let Some(status) = process.ended()
            {
                self.ended += 1;
                // An operator that loses its Lease while the API server is down ends with exit code 1. Report any other
                // exit code, and every panic.
                if status.code() != Some(1) || process.log().contains("panicked") {
                    let log = process.log();
                    let lines: Vec<&str> = log.lines().collect();
                    let last = lines[lines.len().saturating_sub(10)..].join("\n");
                    self.wrong.push(format!("the operator ended by itself: {status}\n{last}"));
                }
                self.start(rng);
            }
            if Instant::now() >= end {
                return;
            }
            sleep(BEAT).await;
        }
    }
}
