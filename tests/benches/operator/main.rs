//! Measures the cost of reconciling fleets of Agents on the embedded cluster. The figures are passes per second,
//! processor time, memory and API calls. All figures describe only the operator's process.
//!
//! `cargo bench --locked --workspace --all-features --bench operator` measures 0, 1,000, 10,000 and 17,000 Agents and
//! prints a table at the end. With `UPDATE_PERFORMANCE=1`, the bench also writes the table into
//! `docs/reference/performance.md`. If numbers follow `--`, the bench measures fleets with these numbers of Agents
//! instead.
//!
//! | module | contents |
//! |---|---|
//! | `fleet` | a listening cluster with its objects |
//! | `meter` | runs the operator as a separate process; reads its metrics and its resource usage |
//! | `story` | the events during which the bench measures a fleet |
//! | `table` | the table, and the upper bounds in it |

mod fleet;
mod meter;
mod story;
mod table;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use kaos_operator::cli::Cli;

/// The number of Agents in each fleet. The fleet without Agents shows the cost of the process alone. With 17,000
/// Agents, the operator keeps more than 50,000 objects in memory.
const AGENTS: [usize; 4] = [0, 1_000, 10_000, 17_000];

fn main() -> Result<ExitCode> {
    // The bench starts this executable as the operator and as its compile children.
    if std::env::args().nth(1).is_some_and(|verb| ["run", "compile-child"].contains(&&*verb)) {
        return Ok(Cli::parse().run());
    }
    let mut sizes = AGENTS.to_vec();
    let asked = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).map(|argument| argument.parse());
    let asked: Vec<usize> = asked.collect::<std::result::Result<_, _>>()?;
    if !asked.is_empty() {
        sizes = asked;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut told = Vec::new();
    for agents in sizes {
        eprintln!("{agents} Agents");
        told.push(runtime.block_on(story::tell(agents))?);
    }
    kaos_tests::page::publish("operator", &table::of(&told))?;
    let wrong: Vec<String> = told.iter().flat_map(table::wrong).collect();
    for line in &wrong {
        eprintln!("{line}");
    }
    Ok(if wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
