//! Random objects of the three kinds on a real API server. Each is either refused here, with the place of what is wrong; or
//! the server takes what the default policies make of it, and holds what was asked for. And what is refused here, the
//! server refuses, too.
//!
//! What only a cluster can know is left out: there are no quotas, webhooks or names that are taken.
//!
//! | module | what is in it |
//! |---|---|
//! | `generate` | objects by the schemas of their kinds and of Kubernetes' own types |
//! | `words` | values that fields may have, and values that they may not |
//! | `server` | the API server: trying, applying, reading |
//! | `asked` | whether what is stored is what was asked for |
//! | `run` | one object from its making to the end |
//! | `immutable` | changes that a plan knows cannot be applied |
//!
//! `KAOS_SEED` says which seed, `KAOS_FUZZ_SECONDS` how long it lasts, `KAOS_FUZZ_OBJECT` which object of a seed alone.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "that is how tests fail")]

mod asked;
mod generate;
mod immutable;
mod run;
mod server;
mod words;

use std::time::{Duration, Instant};

use kaos_tests::control_plane::{ControlPlane, Extent};

use run::Run;
use server::Server;

/// How long it lasts unless something else is said.
const SECONDS: u64 = 60;
/// Findings that end it: more say nothing new.
const ENOUGH: usize = 20;
/// So many objects are made in any time.
const LEAST: u64 = 50;

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is no number")))
}

#[tokio::test]
async fn what_is_not_refused_here_is_taken_there_as_asked() {
    let seed = number("KAOS_SEED").unwrap_or_else(|| fastrand::u64(..100_000));
    let time = Duration::from_secs(number("KAOS_FUZZ_SECONDS").unwrap_or(SECONDS));
    let only = number("KAOS_FUZZ_OBJECT");
    println!("seed {seed}: play it again with KAOS_SEED={seed} tests/run manifests");
    let cluster = ControlPlane::of(Extent::Api).unwrap();
    let server = Server::over(&cluster).await;
    let mut run = Run::new(server, seed);
    let begin = Instant::now();
    let mut object = only.unwrap_or_default();
    while (begin.elapsed() < time || object < LEAST) && run.wrong.len() < ENOUGH {
        run.object(object).await;
        if only.is_some() {
            break;
        }
        object += 1;
    }
    println!("{}", run.summary(begin.elapsed()));
    assert!(run.wrong.is_empty(), "seed {seed}: {} objects end otherwise\n{}", run.wrong.len(), run.wrong.join("\n\n"));
    if only.is_none() {
        run.has_seen_everything();
    }
}
