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
//! `UPDATE_PERFORMANCE=1`, the bench also writes the tables into `docs/reference/performance.md`. If names of parts
//! follow `--`, such as `previewing`, the bench measures only these parts. In this case, the bench prints the tables of
//! these parts, but writes no file.

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

use anyhow::{Context as _, Result, bail};
use clap::Parser as _;
use futures_util::FutureExt as _;
use futures_util::future::LocalBoxFuture;
use kaos_operator::cli::Cli;
use kaos_tests::page;

use crate::part::Part;

/// Measures one part.
type Measure = fn() -> LocalBoxFuture<'static, Result<Part>>;

/// The names of all parts, in the order in which the performance page shows them.
const PARTS: [(&str, Measure); 6] = [
    ("swap", || swap::measure().boxed_local()),
    ("scripted", || scripted::measure().boxed_local()),
    ("isolation", || isolation::measure().boxed_local()),
    ("previewing", || previewing::measure().boxed_local()),
    ("planning", || planning::measure().boxed_local()),
    ("recording", || recording::measure().boxed_local()),
];

fn main() -> Result<ExitCode> {
    // The bench starts this executable as `policy plan` and as the compile child of the operator.
    if std::env::args().nth(1).is_some_and(|verb| ["policy", "compile-child"].contains(&&*verb)) {
        return Ok(Cli::parse().run());
    }
    let named: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    if let Some(unknown) = named.iter().find(|name| PARTS.iter().all(|(part, _)| part != name)) {
        bail!("unknown part {unknown}; the parts are {}", PARTS.map(|(part, _)| part).join(", "));
    }
    let mut parts = Vec::new();
    for (part, measure) in PARTS {
        if named.is_empty() || named.iter().any(|name| name == part) {
            parts.push(runtime.block_on(measure()).with_context(|| format!("the part {part}"))?);
        }
    }
    let texts = parts.iter().map(|part| part.text.as_str()).collect::<Vec<_>>().join("\n");
    if named.is_empty() {
        page::publish("installing", &texts)?;
    } else {
        println!("{texts}");
    }
    Ok(page::verdict(&parts.into_iter().filter_map(|part| part.missed).collect::<Vec<_>>()))
}
