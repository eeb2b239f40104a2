//! Chaos on real Kubernetes. The network, the API server, etcd and the operator's process fail. After the faults, the
//! cluster must contain the same objects as after a run without faults.
//!
//! The seed determines the faults and their order. The seed does not determine how processes and threads interleave, so
//! a seed that failed once may need several runs to fail again.
//!
//! | module | contents |
//! |---|---|
//! | `proxy` | the network between the operator and the API server |
//! | `keeper` | runs the operator as a process and restarts it when it ends |
//! | `actors` | the actions of users during the run, and the objects that they want at the end |
//! | `disasters` | the disasters that happen to the cluster |
//! | `run` | runs one seed from start to end |
//!
//! `KAOS_SEED` sets the seed, and `KAOS_CHAOS_SECONDS` sets the duration.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "that is how tests fail")]

mod actors;
mod disasters;
mod keeper;
mod proxy;
mod run;

use std::time::Duration;

/// The default duration of the faults, in seconds.
const SECONDS: u64 = 60;

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is no number")))
}

#[tokio::test]
async fn a_cluster_converges_after_random_disasters_and_edits() {
    let given = number("KAOS_SEED");
    let seed = given.unwrap_or_else(|| fastrand::u64(..100_000));
    let time = Duration::from_secs(number("KAOS_CHAOS_SECONDS").unwrap_or(SECONDS));
    println!("seed {seed}: play it again with KAOS_SEED={seed} tests/run chaos");
    let ended = run::chaos(seed, time).await;
    if given.is_some() || !ended.wrong.is_empty() {
        println!("--- what happened\n{}", ended.trace.join("\n"));
    }
    println!("{}", ended.summary);
    assert!(ended.wrong.is_empty(), "seed {seed} does not converge\n{}", ended.wrong.join("\n"));
}
