//! Tests that the operator recovers from faults: after the faults end, the cluster must contain the same objects as
//! after a run without faults.
//!
//! The seed decides everything: the users' actions, the behaviour of the API server and of the network, and the crashes
//! of the operator. Each run has its own simulated cluster, in simulated time. Two runs with one seed are equal.
//!
//! | module | contents |
//! |---|---|
//! | `actors` | the actions of users during the simulation, and the objects that they want at the end |
//! | `trouble` | the faults in the operator's requests and watches |
//! | `run` | runs one seed from start to end |
//! | `check` | checks the state of the cluster after all changes |
//! | `hits` | counts the faults of each kind |
//! | `rollouts` | rollouts under crashes, and two stories that end the operator at each write of a rollout |
//! | `shrink` | finds the steps that a failed seed needs for its failure |
//! | `sweep` | ends the operator at each write of one story |
//! | `upgrades` | upgrades of the operator to versions with other default policies, under crashes |
//!
//! `KAOS_SEEDS` sets the number of seeds. `KAOS_SEED` runs one seed and prints its events.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "that is how tests fail")]

mod actors;
mod check;
mod hits;
mod rollouts;
mod run;
mod shrink;
mod sweep;
mod trouble;
mod upgrades;

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use hits::Hits;
use run::{Ended, simulate};

/// The number of seeds in CI. The nightly run uses 10,000 seeds.
const SEEDS: u64 = 50;

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is no number")))
}

/// Returns a report on a failed seed. The report leaves out the steps that the failure does not need.
fn failure(seed: u64, all: Ended) -> String {
    let run = |without: &BTreeSet<usize>| simulate(seed, without, &Hits::default());
    let without = shrink::superfluous(all.steps, |without| !run(without).wrong.is_empty());
    let left = all.steps - without.len();
    let shown = if without.is_empty() { all } else { run(&without) };
    format!(
        "{report}{left} of {steps} steps are necessary for this\n",
        report = report(seed, &shown),
        steps = shown.steps
    )
}

/// Returns the report on a run.
fn report(seed: u64, ended: &Ended) -> String {
    format!(
        "=== seed {seed}: replay it with KAOS_SEED={seed} tests/run simulate\n--- what happened\n{}\n--- the last requests of the \
         operator\n{}\n--- what is wrong\n{}\n",
        ended.trace.join("\n"),
        ended.last_requests(60).join("\n"),
        ended.wrong.join("\n"),
    )
}

/// The maximum number of failed seeds that the test's message reports.
const SHOWN: usize = 3;

#[test]
fn a_simulated_cluster_converges_after_faults_and_crashes() {
    let hits = Hits::default();
    if let Some(seed) = number("KAOS_SEED") {
        let ended = simulate(seed, &BTreeSet::new(), &hits);
        println!("{}", report(seed, &ended));
        assert!(ended.wrong.is_empty(), "seed {seed} does not converge\n{}", failure(seed, ended));
        return;
    }
    let (first, seeds) = (number("KAOS_FIRST_SEED").unwrap_or(0), number("KAOS_SEEDS").unwrap_or(SEEDS));
    let (next, failed) = (AtomicU64::new(first), Mutex::new(Vec::new()));
    let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + seeds {
                        return;
                    }
                    let ended = simulate(seed, &BTreeSet::new(), &hits);
                    if !ended.wrong.is_empty() {
                        failed.lock().unwrap().push((seed, ended));
                    }
                }
            });
        }
    });
    println!("faults in {seeds} seeds\n{}", hits.table());
    let mut failed = failed.into_inner().unwrap();
    failed.sort_unstable_by_key(|(seed, _)| *seed);
    let numbers: Vec<u64> = failed.iter().map(|(seed, _)| *seed).collect();
    let reports: Vec<String> = failed.into_iter().take(SHOWN).map(|(seed, ended)| failure(seed, ended)).collect();
    assert!(
        numbers.is_empty(),
        "{reports}\n{failed} of {seeds} seeds fail: {numbers:?}",
        reports = reports.join("\n"),
        failed = numbers.len()
    );
    // Check only a full run for missing faults: a few seeds may cause only some kinds of faults.
    let missing = if seeds < SEEDS { Vec::new() } else { hits.missing() };
    assert!(
        missing.is_empty(),
        "these faults never occurred, so the simulation proves nothing about them: {missing:?}"
    );
}

#[test]
fn a_seed_repeats_its_run_request_by_request() {
    // Run each seed twice, on two threads, so that the two runs cannot share thread-local state.
    for seed in [3, 7] {
        let runs = std::thread::scope(|scope| {
            let runs = [(); 2].map(|()| scope.spawn(move || simulate(seed, &BTreeSet::new(), &Hits::default())));
            runs.map(|run| run.join().unwrap())
        });
        let [one, other] = runs;
        let differs = one.journal.iter().zip(&other.journal).position(|(one, other)| one != other);
        if let Some(at) = differs {
            let around = |run: &Ended| run.journal[at.saturating_sub(5)..(at + 3).min(run.journal.len())].join("\n");
            panic!("seed {seed} differs at request {at}\n{}\n--- and\n{}", around(&one), around(&other));
        }
        assert_eq!((one.journal.len(), one.trace), (other.journal.len(), other.trace), "seed {seed}");
        assert!(one.journal.len() > 200, "too few requests for a comparison: {count}", count = one.journal.len());
    }
}
