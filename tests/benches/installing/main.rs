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

/// What one part of the bench found.
struct Part {
    /// For the page.
    text: String,
    /// The aim that was missed.
    missed: Option<String>,
}

fn main() -> Result<ExitCode> {
    // The operator compiles in a child, and a plan is a process of its own; both are this executable.
    if std::env::args().nth(1).is_some_and(|verb| ["policy", "compile-child"].contains(&&*verb)) {
        return Ok(Cli::parse().run());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let missed = runtime.block_on(async {
        let parts = [swap::measure().await?, isolation::measure().await?, planning::measure().await?];
        let texts: Vec<_> = parts.iter().map(|part| part.text.as_str()).collect();
        page::publish("installing", &texts.join("\n"))?;
        anyhow::Ok(parts.into_iter().filter_map(|part| part.missed).collect::<Vec<_>>())
    })?;
    Ok(page::verdict(&missed))
}
