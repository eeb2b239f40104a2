//! Measures how long the operator takes to show the effect of a candidate on ten thousand Agents, and how much this
//! slows down passes over other objects.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use kaos_tests::harness::read::text;
use kaos_tests::harness::samples;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::part::Part;
use crate::stage::{BEAT, Stage, milliseconds, percentile, ratio, row};
use crate::swap::edition;

/// The number of Agents that a candidate would change.
const AGENTS: usize = 10_000;
/// The number of candidates. No candidate serves, because each exceeds the limit for changed objects.
const CANDIDATES: u32 = 5;
/// The limit of each candidate.
const GATE: &str = "rollout: {gate: {maxObjectsChanged: 0}}";
/// The upper bound, in milliseconds, until the effect of a candidate is in its status.
///
/// The time begins with the apply of the candidate's ConfigMap.
const EFFECT: f64 = 5000.0;
/// The number of MCPServers that the bench edits in turn. If the bench edited only one MCPServer, it would soon reach
/// the operator's limit for the writes of one child.
const SERVERS: usize = 100;
/// The number of edits without a preview.
const EDITS: usize = 2_000;
/// The upper bound of a ratio: the time of an edit during a preview, divided by the time of an edit without a preview.
const LONGER: f64 = 1.3;
/// The time limit until the operator holds a candidate.
const LIMIT: Duration = Duration::from_mins(2);
/// The time limit until every Agent is ready.
const LOAD: Duration = Duration::from_mins(15);

/// Edits one of the MCPServers. Returns the time until the operator has finished the pass for this edit.
async fn edit(stage: &Stage, number: usize) -> Result<Duration> {
    let mut server = samples::mcp_server(&format!("edited-{}", number % SERVERS));
    server["spec"]["container"] = json!({"env": [{"name": "EDITS", "value": number.to_string()}]});
    stage.served(&server).await
}

/// Creates the Agents, and waits until they are ready.
async fn load(stage: &Stage) -> Result<()> {
    stage.apply(&samples::model_api("llm")).await?;
    for number in 0..AGENTS {
        stage.apply(&samples::agent(&format!("a{number}"), "llm", &json!({}))).await?;
    }
    let began = Instant::now();
    while !stage.all("Agent").iter().all(|agent| agent["status"]["ready"] == true) {
        ensure!(began.elapsed() < LOAD, "timed out waiting until the operator has served all Agents");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    stage.cluster.settled().await;
    Ok(())
}

/// Installs a candidate. If `edits` is not `None`, edits MCPServers in the meantime, and adds the number of edits to
/// `edits`. Returns the time until the effect is in the revision's status, and the time of each edit that began during
/// the preview.
async fn preview(stage: &Stage, number: u32, mut edits: Option<&mut usize>) -> Result<(Duration, Vec<Duration>)> {
    let name = |revision: &Value| text(&revision["metadata"]["name"]).to_owned();
    let earlier: BTreeSet<String> = stage.all("PolicyRevision").iter().map(|it| name(it)).collect();
    let (package, ..) = edition(number, GATE)?;
    let began = Instant::now();
    stage.apply(&package).await?;
    let new = || stage.all("PolicyRevision").into_iter().find(|it| !earlier.contains(&name(it)));
    let mut times = Vec::new();
    let revision = loop {
        let revision = new().unwrap_or_default();
        let state = text(&revision["status"]["state"]);
        if state == "Held" {
            break revision;
        }
        ensure!(began.elapsed() < LIMIT, "the candidate is not held, but {state}");
        let Some(edits) = edits.as_mut() else {
            tokio::time::sleep(BEAT).await;
            continue;
        };
        **edits += 1;
        let time = edit(stage, **edits).await?;
        // Leave out edits that began earlier, during the gate's checks.
        if state == "Previewing" {
            times.push(time);
        }
    };
    let (took, effect) = (began.elapsed(), &revision["status"]["preview"]);
    let counts = [&effect["objects"], &effect["changed"]];
    ensure!(counts == [&json!(AGENTS), &json!(AGENTS)], "the effect does not count all Agents: {effect:#}");
    ensure!(effect["morePaths"] == 0, "the effect does not show all paths: {effect:#}");
    Ok((took, times))
}

/// Measures the candidates. Returns the rows of the table.
pub(crate) async fn measure() -> Result<Part> {
    let stop = CancellationToken::new();
    let stage = Stage::with_operator(&stop).await?;
    load(&stage).await?;
    let mut edits = 0;
    // Do not measure the first edit of each server, because it creates the server. Do not measure the first candidate
    // either.
    for _ in 0..SERVERS {
        edits += 1;
        edit(&stage, edits).await?;
    }
    preview(&stage, 0, None).await?;
    let (mut effects, mut alone, mut beside) = (Vec::new(), Vec::new(), Vec::new());
    for number in 1..=CANDIDATES {
        effects.push(preview(&stage, number, None).await?.0);
    }
    for _ in 0..EDITS {
        edits += 1;
        alone.push(edit(&stage, edits).await?);
    }
    let mut effects_beside = Vec::new();
    for number in CANDIDATES + 1..=2 * CANDIDATES {
        let (took, times) = preview(&stage, number, Some(&mut edits)).await?;
        effects_beside.push(took);
        beside.extend(times);
    }
    stop.cancel();
    let ratio = |percent| ratio(&beside, &alone, percent);
    let slowest = milliseconds(percentile(&effects, 95));
    let mut missed = Vec::new();
    if slowest > EFFECT {
        let took = format!("the effect on {AGENTS} Agents can be read after {slowest:.0} ms");
        missed.push(format!("{took}, but the aim is at most {EFFECT:.0}"));
    }
    if ratio(95) > LONGER {
        let took = format!("edits take {:.2} times as long at p95 during a preview", ratio(95));
        missed.push(format!("{took}, but the aim is at most {LONGER}"));
    }
    let missed = (!missed.is_empty()).then(|| missed.join("; "));
    let text = format!(
        "{CANDIDATES} candidates change one annotation of {AGENTS} Agents each. Then the bench installs {CANDIDATES} more \
         candidates, and edits MCPServers without a pause. Each edit lasts until the operator served the \
         edit:\n\n| ms | median | p95 |\n|---|---:|---:|\n{}{}{}{}| times as long (aim: {LONGER}) | \
         {:.2} | {:.2} |\n",
        row(&format!("from the ConfigMap until the effect can be read, without edits (aim: {EFFECT:.0})"), &effects),
        row("the same with edits", &effects_beside),
        row(&format!("{EDITS} edits without a preview"), &alone),
        row(&format!("{} edits during the previews", beside.len()), &beside),
        ratio(50),
        ratio(95),
    );
    Ok(Part { text, missed })
}
