//! The events during which the bench measures a fleet. A first operator starts, and then a second operator replaces the
//! first operator. Then the bench changes a ModelAPI that a thousand Agents use: it adds a label, which changes no
//! manifest, and then a model, which changes only the ModelAPI's own manifests. At its end, the second operator writes
//! proofs of the settled objects. A third operator reads these proofs.

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
    /// Agents in the fleet.
    pub(crate) agents: usize,
    /// Objects in the operator's memory, and the size of their text in bytes.
    pub(crate) stored: (f64, f64),
    /// The work of the first operator, which creates all children.
    pub(crate) creation: Span,
    /// The peak memory during the creation, and the memory afterwards, in bytes.
    pub(crate) created: (u64, u64),
    /// The work of the second operator, which finds every child as planned.
    pub(crate) restart: Span,
    /// The peak memory during the restart, and the memory afterwards, in bytes.
    pub(crate) settled: (u64, u64),
    /// The work of the second operator after a user sets a label on a ModelAPI. `None` if the fleet has no Agents.
    pub(crate) label: Option<Span>,
    /// The work of the second operator after a user adds a model to a ModelAPI. No Agent uses this model. `None` if the
    /// fleet has no Agents.
    pub(crate) model: Option<Span>,
    pub(crate) quiet: Span,
    /// The work of the third operator, which asks no policy about an object with a valid proof.
    pub(crate) recorded: Span,
}

/// Measures a fleet of this size through all events.
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
