//! A bench for complete operators.
//!
//! The bench starts any operator for the KAOS kinds as a process with the rights of its chart. The control plane
//! consists of etcd and kube-apiserver, so no pod ever runs. The bench creates a load from a seed, changes the ModelAPI
//! that all Agents share, kills the operator and starts it again. The bench measures an operator only from outside:
//! through the API server's audit log, `/proc`, and the objects. To compare two operators, run:
//!
//! `cargo run -p kaos-bench -- --operator 'COMMAND …' --versus 'COMMAND …'`
//!
//! A shell runs each command. `$ARGUMENTS` are the arguments of the operator's container, except the addresses of the
//! operator's pages. `$HEALTH` and `$METRICS` are free addresses for these pages. From the health page, the bench
//! learns when the operator is ready. From the metrics page, the bench reads the number of passes.
//!
//! | module | contents |
//! |---|---|
//! | [`stage`] | the control plane, with everything that the operator's chart installs, except the operator itself |
//! | [`load`] | the objects |
//! | [`subject`] | the operator as a process; [`tree`] measures its resource usage |
//! | [`calls`] | the operator's requests to the API server |
//! | [`story`] | the actions of the bench, divided into chapters |
//! | [`figures`] | the figures of an operator, and their upper bounds |
//! | [`report`] | the table, the JSON, and with `UPDATE_PERFORMANCE` also the performance page |

mod calls;
mod figures;
mod load;
mod report;
mod stage;
mod story;
mod subject;
mod tree;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Parser;
use kaos_tests::control_plane::chart;

use crate::figures::Figures;
use crate::load::Load;
use crate::report::{Measured, Report};
use crate::stage::Cluster;

/// Measure whole operators from outside
#[derive(Debug, Parser)]
#[command(name = "kaos-bench")]
struct Arguments {
    /// Command of the operator to measure, run by a shell; $ARGUMENTS are the arguments of the container in --install
    /// except the addresses of the operator's pages, and $HEALTH and $METRICS are free addresses for these pages
    #[arg(long, value_name = "COMMAND")]
    operator: String,
    /// Command of another operator to compare with
    #[arg(long, value_name = "COMMAND")]
    versus: Option<String>,
    /// Manifests that the operator needs: definitions, rights, configuration; the bench reads the operator's arguments
    /// and environment from the Deployment, but does not create the Deployment
    #[arg(long, value_name = "FILE", default_value_os_t = chart::manifests())]
    install: PathBuf,
    /// Manifests that the other operator needs
    #[arg(long, value_name = "FILE", requires = "versus")]
    versus_install: Option<PathBuf>,
    /// Administrator's kubeconfig of an existing cluster; without it, the bench starts etcd and kube-apiserver
    #[arg(long, value_name = "FILE", requires = "audit_log")]
    kubeconfig: Option<PathBuf>,
    /// The audit log of that cluster, at level Metadata and written without delay
    #[arg(long, value_name = "FILE", requires = "kubeconfig")]
    audit_log: Option<PathBuf>,
    #[command(flatten)]
    load: Load,
    /// Number of rounds; the table shows medians, and two operators swap their order in each round
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// Seconds for which to record the requests of an idle operator
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    silence: u64,
    /// Seconds without work after which an operator counts as idle
    #[arg(long, value_name = "SECONDS", default_value_t = 8)]
    still: u64,
    /// File for all measurements
    #[arg(long, value_name = "FILE", default_value = "target/bench.json")]
    json: PathBuf,
    /// Fail if the first operator misses an aim
    #[arg(long)]
    assert: bool,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(run(arguments))
}

async fn run(arguments: Arguments) -> Result<ExitCode> {
    let Arguments { operator, versus, install, versus_install, kubeconfig, audit_log, load, .. } = arguments;
    let cluster = match (kubeconfig, audit_log) {
        (Some(kubeconfig), Some(audit)) => Cluster::Given { kubeconfig, audit },
        _ => Cluster::New,
    };
    let mut subjects = vec![(operator, install.clone())];
    subjects.extend(versus.map(|command| (command, versus_install.unwrap_or(install))));
    let pace =
        story::Pace { still: Duration::from_secs(arguments.still), silence: Duration::from_secs(arguments.silence) };
    let mut measured: Vec<Measured> = subjects.iter().map(|(command, _)| Measured::of(command)).collect();
    for round in 0..arguments.rounds {
        for number in turns(round, subjects.len()) {
            let (command, install) = &subjects[number];
            let namespace = format!("bench-{round}-{number}");
            writeln!(std::io::stderr(), "round {} of {}: {command}", round + 1, arguments.rounds)?;
            let figures: Figures = story::tell(&cluster, install, command, &load, &pace, &namespace).await?;
            measured[number].rounds.push(figures);
        }
    }
    let report = Report { load: &load, measured: &measured };
    report.write_json(&arguments.json)?;
    report.publish()?;
    let missed = report.missed();
    for line in &missed {
        writeln!(std::io::stderr(), "missed: {line}")?;
    }
    Ok(if arguments.assert && !missed.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Returns the order of the operators in a round. The order alternates, so a machine that becomes slower during the
/// bench favours neither operator.
fn turns(round: u16, subjects: usize) -> Vec<usize> {
    let forth = 0..subjects;
    if round.is_multiple_of(2) { forth.collect() } else { forth.rev().collect() }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_order_of_operators_alternates_between_rounds() {
        let rounds: Vec<Vec<usize>> = (0..3).map(|round| super::turns(round, 2)).collect();
        assert_eq!(rounds, [[0, 1], [1, 0], [0, 1]]);
        assert_eq!(super::turns(1, 1), [0]);
    }
}
