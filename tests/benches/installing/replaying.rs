//! Measures how long `policy replay` takes in a separate process, with one case for each Agent. Checks that `policy
//! replay` and `policy plan` count the same changes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use kaos_tests::shipped;
use serde_json::Value;

use crate::planning::{CHANGES, OBJECTS, planning};

/// The counts that the outputs of `policy plan` and of `policy replay` both contain.
const COUNTS: [&str; 5] = ["objects", "changed", "rolls", "refused", "failed"];

/// A case for each Agent, and the candidate with which the bench replays these cases.
pub(crate) struct Replays {
    kubeconfig: PathBuf,
    cases: PathBuf,
    component: PathBuf,
}

/// Returns the name of the Agent with this number.
pub(crate) fn name(number: usize) -> String {
    format!("bench-agent-{number}")
}

impl Replays {
    /// Records a decision about one Agent.
    ///
    /// Derives the case of every other Agent from this record, because the Agents differ only by their names.
    pub(crate) fn prepare(folder: &Path, kubeconfig: &Path) -> Result<Self> {
        let cases = folder.join("cases");
        fs::create_dir(&cases)?;
        let first = folder.join("first.kaos");
        let recorded = Command::new(std::env::current_exe()?)
            .args(["policy", "record", &format!("agent/{}", name(0)), "--output"])
            .arg(&first)
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .output()?;
        ensure!(recorded.status.success(), "policy record: {}", String::from_utf8_lossy(&recorded.stderr));
        let case = fs::read_to_string(first)?;
        for number in 0..OBJECTS {
            fs::write(cases.join(format!("{number}.kaos")), case.replace(&name(0), &name(number)))?;
        }
        let (component, file) = shipped::embedded("agent")?;
        let candidate = folder.join("candidate");
        fs::create_dir(&candidate)?;
        let path = candidate.join("agent.wasm");
        fs::write(&path, component)?;
        fs::write(candidate.join("policy.yaml"), format!("{file}\nsettings:\n  image: registry.example/agent:2\n"))?;
        Ok(Self { kubeconfig: kubeconfig.to_owned(), cases, component: path })
    }

    /// Replays all cases. Returns how long the process of `policy replay` ran.
    pub(crate) fn run(&self, settings: &Path) -> Result<Duration> {
        let began = Instant::now();
        let replayed = Command::new(std::env::current_exe()?)
            .args(["policy", "replay", "-o", "json"])
            .arg(&self.cases)
            .arg("--policy")
            .arg(&self.component)
            .output()?;
        let time = began.elapsed();
        ensure!(replayed.status.code() == Some(CHANGES), "{}", String::from_utf8_lossy(&replayed.stderr));
        let replayed: Value = serde_json::from_slice(&replayed.stdout)?;
        let planned: Value = serde_json::from_slice(&planning(&self.kubeconfig, settings)?.output()?.stdout)?;
        for count in COUNTS {
            ensure!(replayed[count] == planned[count], "{count}: {} and {}", replayed[count], planned[count]);
        }
        Ok(time)
    }
}
