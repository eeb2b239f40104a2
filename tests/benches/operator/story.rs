//! The events during which the bench measures a fleet. A first operator starts, and then a second operator replaces the
//! first operator. Then the bench changes a ModelAPI that a thousand Agents use. The first change adds a label, which
//! changes no manifest. The second change adds a model, which changes only the ModelAPI's own manifests. When the
//! second operator ends, it writes proofs of the settled objects. A third operator reads these proofs.

use std::fs;
use std::time::Duration;

use anyhow::Result;
use kaos_tests::control_plane::group::Group;
use serde_json::{Value, json};

use crate::fleet::Fleet;
use crate::meter::{Meter, Span};

/// How long the bench observes the idle second operator, before this operator ends.
const QUIET: Duration = Duration::from_secs(15);

/// The figures of a fleet.
#[derive(Debug)]
pub(crate) struct FleetFigures {
    /// The number of Agents in the fleet.
    pub(crate) agents: usize,
    /// The number of objects in the second operator's memory, and the size of their text in bytes.
    pub(crate) stored: (f64, f64),
    /// What the first operator counts (passes, requests and other figures) while it creates all children.
    pub(crate) creation: Span,
    /// The first operator's peak memory while it creates the children, and its memory afterwards, in bytes.
    pub(crate) created: (u64, u64),
    /// What the second operator counts until it has found every child as planned.
    pub(crate) restart: Span,
    /// The second operator's peak memory until it has found every child as planned, and its memory afterwards, in
    /// bytes.
    pub(crate) settled: (u64, u64),
    /// What the second operator counts after the bench sets a label on a ModelAPI. `None` if the fleet has no Agents.
    pub(crate) label: Option<Span>,
    /// What the second operator counts after the bench adds a model to a ModelAPI. No Agent uses this model. `None` if
    /// the fleet has no Agents.
    pub(crate) model: Option<Span>,
    pub(crate) quiet: Span,
    /// What the third operator counts. This operator asks no policy about an object with a valid proof.
    pub(crate) recorded: Span,
}

/// Creates a fleet with `agents` Agents, and measures it during all events.
pub(crate) async fn tell(agents: usize) -> Result<FleetFigures> {
    let folder = std::env::temp_dir().join(format!("kaos-operator-bench-{}-{agents}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let group = Group::new(&folder)?;
    let fleet = Fleet::new(agents, &folder).await?;
    let (creation, created) = {
        let mut first = Meter::start(&group, &folder, &fleet.kubeconfig)?;
        let done = first.settled(agents).await?;
        let (now, peak) = first.memory()?;
        (done.since_start(), (peak, now))
    };
    let mut meter = Meter::start(&group, &folder, &fleet.kubeconfig)?;
    let found = meter.settled(agents).await?;
    let (now, peak) = meter.memory()?;
    let label = json!({"metadata": {"labels": {"changed": "1"}}});
    let models = json!({"spec": {"proxyConfig": {"models": ["*", "another"]}}});
    let (label, model) = (changed(&mut meter, &fleet, &label).await?, changed(&mut meter, &fleet, &models).await?);
    let before = meter.read()?;
    tokio::time::sleep(QUIET).await;
    let after = meter.read()?;
    meter.end().await?;
    let recorded = Meter::start(&group, &folder, &fleet.kubeconfig)?.settled(agents).await?.since_start();
    Ok(FleetFigures {
        agents,
        stored: found.stored(),
        creation,
        created,
        restart: found.since_start(),
        settled: (peak, now),
        label,
        model,
        quiet: after.since(&before),
        recorded,
    })
}

async fn changed(meter: &mut Meter, fleet: &Fleet, patch: &Value) -> Result<Option<Span>> {
    if fleet.agents == 0 {
        return Ok(None);
    }
    let before = meter.read()?;
    fleet.change_model(patch).await?;
    Ok(Some(meter.settled(fleet.agents).await?.since(&before)))
}
