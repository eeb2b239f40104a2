//! What reconciling costs: passes a second, processor time, memory and API calls of the operator alone, for fleets of
//! Agents on the embedded cluster.
//!
//! `cargo bench --locked --workspace --all-features --bench operator` measures 0, 1,000 and 10,000 Agents and ends with a
//! table, which goes into `docs/reference/performance.md` with `UPDATE_PERFORMANCE=1`. Numbers behind `--` are sizes of
//! fleets in place of these.
//!
//! | module | what is in it |
//! |---|---|
//! | `fleet` | a cluster that listens, and the objects in it |
//! | `meter` | the operator as a process of its own, and what it and the machine say of it |
//! | `story` | what happens to a fleet while it is measured |
//! | `table` | the table, and what it must show |

mod fleet;
mod meter;
mod story;
mod table;

use std::process::ExitCode;

use clap::Parser;
use kaos_operator::cli::Cli;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Sizes of fleets. The first shows what the process takes by itself.
const AGENTS: [usize; 3] = [0, 1_000, 10_000];

fn main() -> Result<ExitCode> {
    // The operator is this executable, and what it compiles policies in.
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
