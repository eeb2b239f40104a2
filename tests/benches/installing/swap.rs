//! Measures the time from a change of a policy's ConfigMap until the new policy serves an object.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::Result;
use kaos_policy::digest::Digest;
use kaos_tests::harness::samples;
use kaos_tests::shipped;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::part::Part;
use crate::stage::{Stage, milliseconds, percentile};

/// The number of measured changes of the policy. Before the measured changes, the bench makes one change that it does
/// not measure.
const CHANGES: u32 = 24;
/// The upper bound, in milliseconds, for the time from the apply until the new policy serves. This time does not
/// include the compilation.
const BEYOND: f64 = 300.0;
/// The number of Agents that the policy serves.
const AGENTS: usize = 20;

/// Returns an edition of the Agents' policy: the package, its component, and the component's digest. An edition is a
/// version for a test, and `number` is its number. `rollout` is a line for the package's `policy.yaml`, or empty.
pub(crate) fn edition(number: u32, rollout: &str) -> Result<(Value, Vec<u8>, String)> {
    let (component, file) = shipped::embedded("agent")?;
    let component = shipped::with_section(component, "edition", &number.to_be_bytes())?;
    let mut file = file.to_owned();
    write!(file, "\nsettings: {{extraAnnotations: {{example.com/edition: e{number}}}}}\n{rollout}\n")?;
    let digest = Digest::of(&component).to_string();
    Ok((shipped::package("agents", Some(&component), &file)?, component, digest))
}

fn edited(edits: usize) -> Value {
    samples::agent("edited", "llm", &json!({"container": {"env": [{"name": "EDITS", "value": edits.to_string()}]}}))
}

/// Changes the policy repeatedly, and measures each change. Returns the rows of the bench's table.
pub(crate) async fn measure() -> Result<Part> {
    let stop = CancellationToken::new();
    let stage = Stage::with_operator(&stop).await?;
    stage.apply(&samples::model_api("llm")).await?;
    for number in 0..AGENTS {
        stage.apply(&samples::agent(&format!("a{number}"), "llm", &json!({}))).await?;
    }
    let is_of = |agent: &Value, digest: &str| agent["status"]["policy"]["digest"] == digest;
    let (mut compiled, mut first, mut all, mut meanwhile) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut size, mut edits) = (0, 0);
    for number in 0..=CHANGES {
        let (package, component, digest) = edition(number, "")?;
        size = component.len();
        // Wait until the operator has finished all work for the previous change.
        stage.cluster.settled().await;
        let began = Instant::now();
        stage.apply(&package).await?;
        let any = || stage.all("Agent").iter().any(|agent| is_of(agent, &digest));
        let every = || stage.all("Agent").iter().all(|agent| is_of(agent, &digest));
        let mut waits = Vec::new();
        // Edit an Agent repeatedly. For each edit, the operator must complete a pass with the old policy or with the
        // new policy.
        let editing = async {
            loop {
                edits += 1;
                match stage.served(&edited(edits)).await {
                    Ok(wait) => waits.push(wait),
                    Err(error) => return error,
                }
            }
        };
        tokio::select! {
            serves = stage.until("the new policy serves", any) => drop(serves?),
            error = editing => return Err(error),
        }
        let serves = began.elapsed();
        stage.until("the new policy serves all Agents", every).await?;
        if number > 0 {
            compiled.push(stage.compiled());
            first.push(serves);
            all.push(began.elapsed());
            meanwhile.extend(waits);
        }
    }
    stop.cancel();
    let beyond: Vec<Duration> =
        first.iter().zip(&compiled).map(|(first, compiled)| first.saturating_sub(*compiled)).collect();
    let row = |what: &str, times: &[Duration]| {
        let [median, most] = [50, 95].map(|percent| milliseconds(percentile(times, percent)));
        format!("| {what} | {median:.0} | {most:.0} |\n")
    };
    let slowest = milliseconds(percentile(&beyond, 95));
    let missed = (slowest > BEYOND).then(|| {
        format!(
            "a swap takes {slowest:.0} ms at p95 until the first Agent, without compiling, but the aim is at most {BEYOND}"
        )
    });
    let text = format!(
        "A component of {:.0} KB, changed {CHANGES} times, {AGENTS} Agents:\n\n\
         | ms | median | p95 |\n|---|---:|---:|\n{}{}{}{}{}",
        f64::from(u32::try_from(size)?) / 1000.0,
        row("from the ConfigMap to the first Agent that the policy serves", &first),
        row("of that, compiling the component in a child process", &compiled),
        row("from the ConfigMap to the first Agent, without compiling (aim: 300)", &beyond),
        row("from the ConfigMap to the last Agent", &all),
        row(
            &format!(
                "{count} edits of an Agent during the swap, each until the operator served the edit",
                count = meanwhile.len()
            ),
            &meanwhile
        ),
    );
    Ok(Part { text, missed })
}
