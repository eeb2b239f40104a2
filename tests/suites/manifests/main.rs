//! Tests random objects of three kinds on a real API server. If the policy or the host refuses an object, the refusal
//! must have the path of the violation. If only the host refuses the object, the server must also reject the object
//! itself or its manifests. If the policy and the host accept the object, the server must accept the manifests, and
//! store the manifests as requested.
//!
//! The tests do not cover rejections that depend on other objects of the cluster: quotas, webhooks and names that are
//! already in use.
//!
//! | module | contents |
//! |---|---|
//! | `generate` | generates objects with the generator of `policy conform` |
//! | `server` | the API server: dry runs, applying, reading |
//! | `recordings` | repeats the recordings that the tests of the embedded cluster use |
//! | `asked` | compares a stored object with the requested object |
//! | `run` | generates one object and checks everything about it |
//! | `immutable` | changes that the server rejects, as a plan predicts |
//!
//! `KAOS_SEED` sets the seed, and `KAOS_FUZZ_SECONDS` sets the duration. `KAOS_FUZZ_OBJECT` is the number of an object:
//! the tests then check only this object of the seed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "that is how tests fail")]

mod asked;
mod generate;
mod immutable;
mod recordings;
mod run;
mod server;

use std::time::{Duration, Instant};

use kaos_tests::control_plane::{ControlPlane, Extent};

use run::Run;
use server::Server;

/// The default duration in seconds.
const SECONDS: u64 = 60;
/// The run ends after this number of findings (differences between this program and the server), because further
/// findings are usually similar.
const ENOUGH: usize = 20;
/// The minimum number of objects. The run takes longer than its duration if it has not yet checked this number of
/// objects.
const LEAST: u64 = 50;

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is no number")))
}

#[tokio::test]
async fn manifests_that_pass_the_checks_are_accepted_unchanged_by_the_api_server() {
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
    assert!(
        run.wrong.is_empty(),
        "seed {seed}: {count} objects have a wrong outcome\n{findings}",
        count = run.wrong.len(),
        findings = run.wrong.join("\n\n")
    );
    if only.is_none() {
        run.has_seen_everything();
    }
}
