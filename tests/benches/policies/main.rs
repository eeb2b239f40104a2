//! Measures the cost of a policy: compilation, loading from the cache of compiled code, a pass in a sandbox, a native
//! pass, memory, and the passes for a thousand objects.
//!
//! `cargo bench --locked --workspace --all-features --bench policies` measures these costs, and prints a table of the
//! main figures at the end. With `UPDATE_PERFORMANCE=1`, the bench also writes the table into
//! `docs/reference/performance.md`.

mod sample;
mod table;
mod whole;

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Parser;
use criterion::Criterion;
use kaos_operator::cli::Cli;
use kaos_operator::policies::Candidate;
use kaos_policy::cache::Cache;
use kaos_policy::clock::SystemClock;
use kaos_policy::compile::InProcessCompiler;
use kaos_policy::contract::{Cluster, Plan, Subject};
use kaos_policy::engine::Engine;
use kaos_policy::failure::Failure;
use kaos_policy::gate::{AtOnce, Bounds, Check, Gate, KnownServer, Step};
use kaos_policy::limits::Limits;
use kaos_policy::policy::Policy;
use kaos_tests::{page, policies};

use sample::sample;

fn main() -> Result<ExitCode> {
    // The functions in `whole` start this executable as child processes.
    if std::env::args().nth(1).is_some_and(|verb| ["render", "compile-child"].contains(&&*verb)) {
        return Ok(Cli::parse().run());
    }
    let mut criterion = Criterion::default().output_directory(&table::folder()).configure_from_args().sample_size(20);
    compiling(&mut criterion)?;
    passes(&mut criterion)?;
    criterion.final_summary();
    Ok(page::verdict(&table::write()?))
}

/// Measures two times for each default policy. The first is the time to compile the policy. The second is the time to
/// load the compiled code from the cache and to open a sandbox.
fn compiling(criterion: &mut Criterion) -> Result<()> {
    let engine = Engine::new()?;
    let folder = std::env::temp_dir().join(format!("policies-bench-{}", std::process::id()));
    let cache = Cache::open(folder.clone())?;
    let clock = SystemClock::start();
    let compiler = InProcessCompiler(engine.clone());
    for candidate in Candidate::embedded()? {
        let gate = Gate {
            engine: &engine,
            compiler: &compiler,
            built_in: &[],
            script_engine: None,
            cache: Some(&cache),
            bounds: Bounds::default(),
            limits: Limits::default(),
            kinds: &[],
            cluster: Cluster::default(),
            clock: &clock,
            turns: &AtOnce,
            server: &KnownServer::default(),
        };
        let name = gate.load(&candidate.inner)?.id().name.clone();
        criterion.bench_function(&format!("compile/{name}"), |bench| {
            bench.iter(|| engine.compile(black_box(&candidate.inner.bytes)));
        });
        criterion.bench_function(&format!("cached/{name}"), |bench| {
            bench.iter_custom(|times| (0..times).map(|_| compiled(&gate.check(black_box(&candidate.inner)))).sum());
        });
    }
    std::fs::remove_dir_all(folder)?;
    Ok(())
}

/// Returns the time for two steps of the gate: getting the compiled code, and opening a sandbox.
fn compiled(check: &Check) -> Duration {
    let steps = check.steps.iter().filter(|taken| matches!(taken.step, Step::Compile | Step::Instantiate));
    steps.map(|taken| taken.time).sum()
}

/// Measures the functions `needs`, `map-env` and `translate` of each default policy for one object, in a new sandbox.
/// Also measures the host's complete pass over this object, without a memo.
fn passes(criterion: &mut Criterion) -> Result<()> {
    for (how, policies) in [("native", policies::native()?), ("sandbox", policies::wasm()?)] {
        for policy in &policies {
            let (renderer, object, lookup) = sample(policy)?;
            let subject = renderer.render(&object, &lookup)?.subject().clone();
            criterion.bench_function(&format!("questions-{how}/{}", policy.id().name), |bench| {
                bench.iter(|| questions(policy, black_box(&subject)));
            });
            criterion.bench_function(&format!("pass-{how}/{}", policy.id().name), |bench| {
                bench.iter(|| renderer.render(black_box(&object), &lookup));
            });
        }
    }
    Ok(())
}

/// Opens a sandbox, and calls the functions `needs`, `map-env` and `translate`, without the host's part of a pass.
fn questions(policy: &Policy, subject: &Subject) -> std::result::Result<Option<Plan>, Failure> {
    let mut sandbox = policy.code().open(policy.limits())?;
    sandbox.begin(subject)?;
    sandbox.needs(&[])?;
    let Ok(env) = sandbox.map_env(Vec::new())? else { return Ok(None) };
    Ok(sandbox.translate(env)?.ok())
}
