//! Measures how long two separate processes take. One runs `policy plan` on a cluster with a thousand objects. The
//! other runs `policy replay` with one case for each of these objects.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use kaos_tests::harness::kinds::Kind;
use kaos_tests::harness::samples;
use kube::api::{Api, DynamicObject, ListParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::json;

use crate::part::Part;
use crate::replaying::{self, Replays};
use crate::stage::{Stage, milliseconds, percentile};

/// The number of Agents on the cluster.
pub(crate) const OBJECTS: usize = 1_000;
/// The upper bound for the time of a plan in milliseconds. This time does not include listing the objects.
const PLAN: f64 = 2000.0;
/// The upper bound for the time of the replays in milliseconds.
const REPLAY: f64 = 2000.0;
/// The number of runs.
const RUNS: usize = 5;
/// The exit code of `policy plan` if the plan contains changes.
pub(crate) const CHANGES: i32 = 2;

/// Measures `policy plan`. Returns a sentence for the performance page.
pub(crate) async fn measure() -> Result<Part> {
    let stage = Stage::bare()?;
    let mut model = samples::model_api("llm");
    model["metadata"]["namespace"] = json!("default");
    model["status"] = json!({"phase": "Ready", "ready": true, "endpoint": "http://llm:8000"});
    stage.cluster.plant("kaos.tools", "modelapis", model);
    for number in 0..OBJECTS {
        let mut agent = samples::agent(&replaying::name(number), "llm", &json!({}));
        agent["metadata"]["namespace"] = json!("default");
        stage.cluster.plant("kaos.tools", "agents", agent);
    }
    let server = stage.listen().await?;
    let folder = std::env::temp_dir().join(format!("installing-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let (kubeconfig, settings) = (folder.join("kubeconfig"), folder.join("settings.yaml"));
    std::fs::write(&kubeconfig, server.kubeconfig("admin"))?;
    std::fs::write(&settings, "image: registry.example/agent:2\n")?;
    let (mut whole, mut listing) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        listing.push(list(&kubeconfig).await?);
        let (kubeconfig, settings) = (kubeconfig.clone(), settings.clone());
        whole.push(tokio::task::spawn_blocking(move || plan(&kubeconfig, &settings)).await??);
    }
    let replays = Replays::prepare(&folder, &kubeconfig)?;
    let replayed: Vec<Duration> = (0..RUNS).map(|_| replays.run(&settings)).collect::<Result<_>>()?;
    std::fs::remove_dir_all(folder)?;
    let replayed = milliseconds(percentile(&replayed, 50));
    let (whole, listing) = (milliseconds(percentile(&whole, 50)), milliseconds(percentile(&listing, 50)));
    let slow = (replayed > REPLAY)
        .then(|| format!("replaying {OBJECTS} cases takes {replayed:.0} ms, but the aim is at most {REPLAY}"));
    let missed = (whole - listing > PLAN).then(|| {
        format!(
            "planning takes {:.0} ms in addition to listing {OBJECTS} objects, but the aim is at most {PLAN}",
            whole - listing
        )
    });
    let text = format!(
        "`policy plan` of a change of settings that concerns {OBJECTS} live Agents, in a process of its own: {whole:.0} ms, \
         of which listing the Agents takes {listing:.0} ms (aim: {PLAN:.0} ms and the listing). `policy replay` of \
         {OBJECTS} cases of these Agents with the same settings, which gives the same counts: {replayed:.0} ms (aim: \
         {REPLAY:.0} ms), {:.2} times as long as the plan.\n",
        replayed / whole
    );
    Ok(Part { text, missed: missed.or(slow) })
}

fn plan(kubeconfig: &Path, settings: &Path) -> Result<Duration> {
    let began = Instant::now();
    let status = planning(kubeconfig, settings)?.stdout(Stdio::null()).status()?;
    ensure!(status.code() == Some(CHANGES), "policy plan ended with {status}");
    Ok(began.elapsed())
}

/// Returns the command that plans a change to the settings in the file `settings`.
pub(crate) fn planning(kubeconfig: &Path, settings: &Path) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["policy", "plan", "--for", "agent", "-o", "json", "--settings"]);
    command.arg(settings).arg("--kubeconfig").arg(kubeconfig);
    Ok(command)
}

/// Measures how long it takes to list the objects of the plan, with the kubeconfig that `policy plan` uses.
async fn list(kubeconfig: &Path) -> Result<Duration> {
    let config = Kubeconfig::read_from(kubeconfig)?;
    let client = Client::try_from(Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await?)?;
    let began = Instant::now();
    for kind in ["Agent", "ModelAPI", "MCPServer"] {
        Api::<DynamicObject>::all_with(client.clone(), &Kind::named(kind).resource())
            .list(&ListParams::default())
            .await?;
    }
    Ok(began.elapsed())
}
