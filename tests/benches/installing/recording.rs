//! Measures how much processor time the flight recorder and budgets cost during a swap that changes the plan of every
//! object.

use std::time::Duration;

use anyhow::{Context as _, Result};
use kaos_operator::budgets::BudgetLimits;
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
/// The number of measured swaps for each set of options.
const SWAPS: u32 = 6;
/// The upper bound of a ratio: the processor time of a swap with an option, divided by the processor time of a swap
/// without this option.
///
/// The bench checks this ratio for two options: the flight recorder and budgets.
const LONGER: f64 = 1.03;

/// Measures swaps with three sets of options: without the flight recorder, with the flight recorder, and also with
/// budgets.
///
/// Swaps with different options alternate, so that other programs on the machine slow them down equally.
pub(crate) async fn measure() -> Result<Part> {
    let stop = CancellationToken::new();
    let usual = Options::default;
    // No namespace uses up these budgets, so the bench measures only the cost of counting.
    let budget = BudgetLimits { fuel: Some(1_000_000_000_000_000), passes: Some(1_000_000_000) };
    let options = [Options { record: 0, ..usual() }, usual(), Options { budget, ..usual() }];
    let mut stages = Vec::new();
    for options in options {
        let stage = Stage::with_options(&stop, options).await?;
        stage.apply(&samples::model_api("llm")).await?;
        for number in 0..AGENTS {
            stage.apply(&samples::agent(&format!("a{number}"), "llm", &json!({}))).await?;
        }
        stages.push(stage);
    }
    let mut times = [Vec::new(), Vec::new(), Vec::new()];
    for number in 0..=SWAPS {
        for (stage, times) in stages.iter().zip(&mut times) {
            let time = swap(stage, number).await?;
            // Do not measure the first swap, because it also installs the policy.
            if number > 0 {
                times.push(time);
            }
        }
    }
    stop.cancel();
    let [bare, usual, limited] = times.map(|times| milliseconds(percentile(&times, 50)));
    let (recorder, budgets) = (usual / bare, limited / usual);
    let missed = [("the flight recorder", recorder), ("budgets", budgets)].into_iter().find(|it| it.1 > LONGER);
    let missed = missed.map(|(what, longer)| {
        format!("a swap with {what} takes {longer:.2} times as much processor time, but the aim is at most {LONGER}")
    });
    let text = format!(
        "A swap that changes the plans of {AGENTS} Agents, in one process with its cluster: {usual:.0} ms of processor \
         time with the flight recorder, {bare:.0} ms without it, {recorder:.2} times as much (aim: {LONGER}); {limited:.0} \
         ms with the flight recorder and with budgets that no namespace uses up, {budgets:.2} times as much as without \
         budgets (aim: {LONGER}).\n"
    );
    Ok(Part { text, missed })
}

/// Installs the version of the policy that `number` chooses.
///
/// Returns the processor time that this process uses until the new version serves every Agent.
async fn swap(stage: &Stage, number: u32) -> Result<Duration> {
    let (package, _, digest) = edition(number, "")?;
    stage.cluster.settled().await;
    let used = || own_processor(std::process::id()).context("the processor time of this process is not known");
    let before = used()?;
    stage.apply(&package).await?;
    let is_served = || stage.all("Agent").iter().all(|agent| agent["status"]["policy"]["digest"] == *digest);
    stage.until("the new policy serves all Agents", is_served).await?;
    stage.cluster.settled().await;
    Ok(used()?.saturating_sub(before))
}
