//! Measures how much processor time the flight recorder costs during a swap that changes the plan of every object.

use std::time::Duration;

use anyhow::{Context as _, Result};
use kaos_operator::operator::Options;
use kaos_tests::harness::samples;
use kaos_tests::usage::own_processor;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::part::Part;
use crate::stage::{Stage, milliseconds, percentile};
use crate::swap::edition;

/// The number of Agents that the policy serves.
const AGENTS: usize = 300;
/// The number of swaps with the recorder, and the number of swaps without it.
const SWAPS: u32 = 6;
/// The upper bound for the processor time with the recorder, divided by the processor time without it.
const LONGER: f64 = 1.03;

/// Measures the swaps. Each swap with the recorder follows a swap without it, so other work on the machine slows down
/// both alike.
pub(crate) async fn measure() -> Result<Part> {
    let stop = CancellationToken::new();
    let sizes = [0, Options::default().record];
    let mut stages = Vec::new();
    for record in sizes {
        let stage = Stage::with_options(&stop, Options { record, ..Options::default() }).await?;
        stage.apply(&samples::model_api("llm")).await?;
        for number in 0..AGENTS {
            stage.apply(&samples::agent(&format!("a{number}"), "llm", &json!({}))).await?;
        }
        stages.push(stage);
    }
    let mut times = [Vec::new(), Vec::new()];
    for number in 0..=SWAPS {
        for (stage, times) in stages.iter().zip(&mut times) {
            let time = swap(stage, number).await?;
            // The first swap also installs the policy.
            if number > 0 {
                times.push(time);
            }
        }
    }
    stop.cancel();
    let [without, with] = times.map(|times| milliseconds(percentile(&times, 50)));
    let longer = with / without;
    let missed = (longer > LONGER).then(|| {
        format!("a swap with the flight recorder takes {longer:.2} times as much processor time, but the aim is at most {LONGER}")
    });
    let text = format!(
        "A swap that changes the plans of {AGENTS} Agents, in one process with its cluster: {with:.0} ms of processor time with the flight recorder, {without:.0} ms without it, {longer:.2} times as much (aim: {LONGER}).\n"
    );
    Ok(Part { text, missed })
}

/// Installs another edition of the policy. Returns the processor time until the new edition serves every Agent.
async fn swap(stage: &Stage, number: u32) -> Result<Duration> {
    let (package, _, digest) = edition(number)?;
    stage.cluster.settled().await;
    let used = || own_processor(std::process::id()).context("the processor time of this process is not known");
    let before = used()?;
    stage.apply(&package).await?;
    let is_served = || stage.all("Agent").iter().all(|agent| agent["status"]["policy"]["digest"] == *digest);
    stage.until("the new policy serves all Agents", is_served).await?;
    stage.cluster.settled().await;
    Ok(used()?.saturating_sub(before))
}
