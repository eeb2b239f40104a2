//! The bench for whole operators.
//!
//! It starts any operator for the KAOS kinds as a process, with the rights of its chart, on a control plane of etcd and
//! kube-apiserver alone, where no Deployment ever becomes ready; puts a seeded load on it; changes what all Agents
//! share; kills it; starts it again. What it tells comes from outside: the API server's audit log, `/proc`, and the
//! objects themselves. So two operators are measured alike:
//!
//! `cargo run -p kaos-bench -- --operator 'COMMAND …' --versus 'COMMAND …'`
//!
//! A command is read by a shell. `$HEALTH` and `$METRICS` are free addresses for its pages: with the first, the bench
//! tells the time until it is ready, with the second how many passes it made.
//!
//! | module | what is in it |
//! |---|---|
//! | [`stage`] | the control plane, with what the operator's chart installs but the operator |
//! | [`load`] | the objects |
//! | [`subject`] | the operator as a process; [`tree`] says what it uses |
//! | [`calls`] | what it asked of the API server |
//! | [`story`] | what is done to it, one chapter after the other |
//! | [`figures`] | what is told of it, and what is aimed at |
//! | [`report`] | the table, the JSON, and with `UPDATE_PERFORMANCE` the page of figures |

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
    /// The operator to measure, as a shell reads it; $HEALTH and $METRICS are free addresses for its pages
    #[arg(long, value_name = "COMMAND")]
    operator: String,
    /// Another one to measure beside it
    #[arg(long, value_name = "COMMAND")]
    versus: Option<String>,
    /// Manifests of what the operator takes: definitions, rights, configuration; its Deployment is not made, and gives the environment
    #[arg(long, value_name = "FILE", default_value_os_t = chart::manifests())]
    install: PathBuf,
    /// The same for the other one
    #[arg(long, value_name = "FILE", requires = "versus")]
    versus_install: Option<PathBuf>,
    /// A cluster that is there already, for somebody who may do everything; otherwise a new one of etcd and kube-apiserver
    #[arg(long, value_name = "FILE", requires = "audit_log")]
    kubeconfig: Option<PathBuf>,
    /// The audit log of that cluster, at level Metadata and written without delay
    #[arg(long, value_name = "FILE", requires = "kubeconfig")]
    audit_log: Option<PathBuf>,
    #[command(flatten)]
    load: Load,
    /// Measure so often, and tell the median; of two operators another one goes first in each round
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// Seconds of silence that are listened to
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    silence: u64,
    /// An operator that has asked for nothing for so many seconds has nothing to do
    #[arg(long, value_name = "SECONDS", default_value_t = 8)]
    still: u64,
    /// Where everything that was measured is written
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

/// Whose turn it is when in a round. Who goes first in one goes last in the next, so that a machine that becomes slower
/// while it works favours nobody.
fn turns(round: u16, subjects: usize) -> Vec<usize> {
    let forth = 0..subjects;
    if round.is_multiple_of(2) { forth.collect() } else { forth.rev().collect() }
}

#[cfg(test)]
mod tests {
    #[test]
    fn who_goes_first_in_a_round_goes_last_in_the_next() {
        let rounds: Vec<Vec<usize>> = (0..3).map(|round| super::turns(round, 2)).collect();
        assert_eq!(rounds, [[0, 1], [1, 0], [0, 1]]);
        assert_eq!(super::turns(1, 1), [0]);
    }
}
