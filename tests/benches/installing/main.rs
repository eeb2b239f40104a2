//! Measures six parts in one run, in real time on an embedded cluster:
//! - how fast a component starts to serve after its ConfigMap changes
//! - how fast a script starts to serve after its ConfigMap changes
//! - how much a policy that burns fuel slows down other policies
//! - how long the operator takes to show the effect of a candidate on ten thousand Agents, and how much this slows down
//!   other objects
//! - how long a plan for a thousand objects takes, and how long the replay of a thousand cases takes
//! - how much the flight recorder and budgets cost during a swap
//!
//! `cargo bench --locked --workspace --all-features --bench installing` measures and prints tables. With
//! `UPDATE_PERFORMANCE=1`, the bench also writes the tables into `docs/reference/performance.md`.

mod isolation;
mod part;
mod planning;
mod previewing;
mod recording;
mod replaying;
mod scripted;
mod stage;
mod swap;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser as _;
use kaos_operator::cli::Cli;
use kaos_tests::page;

fn main() -> Result<ExitCode> {
    // The bench starts this executable as `policy plan` and as the compile child of the operator.
    if std::env::args().nth(1).is_some_and(|verb| ["policy", "compile-child"].contains(&&*verb)) {
        return Ok(Cli::parse().run());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let missed = runtime.block_on(async {
        let parts = [
            swap::measure().await?,
            scripted::measure().await?,
            isolation::measure().await?,
            previewing::measure().await?,
            planning::measure().await?,
            recording::measure().await?,
        ];
        let texts: Vec<_> = parts.iter().map(|part| part.text.as_str()).collect();
        page::publish("installing", &texts.join("\n"))?;
        anyhow::Ok(parts.into_iter().filter_map(|part| part.missed).collect::<Vec<_>>())
    })?;
    Ok(page::verdict(&missed))
}
