//! How fast a policy that somebody installs comes into service, what a burning one costs others, and how long a plan
//! for a thousand objects takes: on an embedded cluster, in real time, all in one run.
//!
//! `cargo bench --locked --workspace --all-features --bench installing` measures and prints; with `UPDATE_PERFORMANCE=1`
//! the tables go into `docs/reference/performance.md`.

mod isolation;
mod planning;
mod stage;
mod swap;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser as _;
use kaos_operator::cli::Cli;
use kaos_tests::page;

fn main() -> Result<ExitCode> {
    // The operator compiles in a child, and a plan is a process of its own; both are this executable.
    if std::env::args().nth(1).is_some_and(|verb| ["policy", "compile-child"].contains(&&*verb)) {
        return Ok(Cli::parse().run());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let parts = [swap::measure().await?, isolation::measure().await?, planning::measure().await?];
        page::publish("installing", &parts.join("\n"))
    })?;
    Ok(ExitCode::SUCCESS)
}
