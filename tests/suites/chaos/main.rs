//! Chaos on real Kubernetes: whatever happens to the network, the API server, etcd and the operator's process, once it is
//! over the cluster holds what it would hold had nothing happened.
//!
//! A seed decides what is done and in which order; how processes and threads take turns is not decided, so that a seed
//! that failed may have to be played more than once.
//!
//! | module | what is in it |
//! |---|---|
//! | `proxy` | the network between the operator and the API server |
//! | `keeper` | the operator as a process that is started again whenever it has ended |
//! | `actors` | what users do meanwhile, and what they want in the end |
//! | `disasters` | what is done to the cluster |
//! | `run` | one seed from start to end |
//!
//! `KAOS_SEED` says which seed, `KAOS_CHAOS_SECONDS` how long it lasts.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "that is how tests fail")]

mod actors;
mod disasters;
mod keeper;
mod proxy;
mod run;

use std::time::Duration;

/// How long things go wrong unless something else is said.
const SECONDS: u64 = 60;

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is no number")))
}

#[tokio::test]
async fn whatever_happens_to_the_cluster_it_ends_as_if_nothing_had() {
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
