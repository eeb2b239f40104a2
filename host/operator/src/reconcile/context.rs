//! Everything that passes share: the watched cluster, the policies, the client of the API server, and time.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use kaos_policy::contract::ResourceType;
use kube::Client;
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    api::Calls,
    error::{CallError, Class},
    events::Events,
    memory::Memories,
    shutdown::computed,
    status::declared_fields::Projections,
    status::times::Transition,
    sync_gate::HeldBack,
};
use crate::{
    catalogue::{Answers, Catalogue, Renderers},
    metrics::{Metrics, Tally},
    processors::Processors,
    watch::{Served, Watch},
};

/// The time of day, for timestamps in objects. Everything else uses tokio's time.
#[derive(Debug, Clone, Copy, Default)]
pub enum Clock {
    /// The machine's clock.
    #[default]
    System,
    /// A start time plus tokio's elapsed time. Under paused time it is the same in every run.
    Since(Timestamp, Instant),
}

impl Clock {
    /// A clock that starts at `moment` and advances with tokio's time.
    pub fn starting_at(moment: Timestamp) -> Self {
        Self::Since(moment, Instant::now())
    }

    /// Returns the current time.
    pub fn now(&self) -> Timestamp {
        match self {
            Self::System => Timestamp::now(),
            Self::Since(moment, start) => moment.saturating_add(start.elapsed()).unwrap_or(*moment),
        }
    }
}

/// The options of a pass; part of the operator's options.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    /// Time until the next look at an object without events.
    pub(crate) resync: Duration,
    /// Maximum time that cleanup may hold an object.
    pub(crate) cleanup: Duration,
    /// Whether a change of a referenced ConfigMap or Secret restarts pods.
    pub(crate) rolls: bool,
    pub(crate) clock: Clock,
}

/// Everything that passes share.
pub(crate) struct Context {
    pub(crate) client: Client,
    pub(crate) watch: Watch,
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) renderers: Renderers,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) memories: Memories,
    pub(crate) held_back: HeldBack,
    pub(crate) projections: Projections,
    pub(crate) events: Events,
    pub(crate) rules: Rules,
    /// Cancelled when the operator shuts down.
    pub(crate) stopping: CancellationToken,
    pub(crate) processors: Processors,
}

impl Context {
    /// The number of objects of each kind that wait for their first pass with the current policy.
    pub(crate) fn awaiting_policy(&self) -> Vec<(ResourceType, usize)> {
        let Some(snapshot) = self.catalogue.load() else { return Vec::new() };
        let awaiting = |(of, answers): (&ResourceType, &Answers)| {
            let made = self.memories.made_since(of, answers.since);
            (of.clone(), self.watch.keys(of).len().saturating_sub(made))
        };
        snapshot.kinds().map(awaiting).collect()
    }

    /// The counts of objects by state, for each kind. A kind with a policy counts even without objects.
    pub(crate) fn tallies(&self) -> BTreeMap<ResourceType, Tally> {
        let mut tallies = self.memories.tallies();
        if let Some(snapshot) = self.catalogue.load() {
            for (of, _) in snapshot.kinds() {
                tallies.entry(of.clone()).or_default();
            }
        }
        tallies
    }

    /// Returns how the API server currently serves a type.
    pub(crate) fn served(&self, of: &ResourceType) -> Result<Served, CallError> {
        self.watch.served(of).ok_or_else(|| CallError {
            what: format!("find {of}"),
            class: Class::Gone,
            message: "the cluster does not serve this type now".to_owned(),
        })
    }

    /// Returns the calls for a type in a namespace.
    pub(crate) fn calls(&self, served: &Served, namespace: &str) -> Calls<'_> {
        Calls::namespaced(&self.client, &served.resource, namespace)
    }

    /// Reads the pass's object from the server. `None` if it is gone or replaced.
    pub(super) async fn read_again(&self, served: &Served, object: &Value) -> Result<Option<Value>, CallError> {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        let live = self.calls(served, text("namespace")).get(text("name")).await?;
        Ok(live.filter(|live| live["metadata"]["uid"] == object["metadata"]["uid"]))
    }

    /// Writes an Event about a change of an object.
    pub(crate) async fn tell(&self, object: &Value, transition: &Transition) {
        self.events.write(&self.client, self.rules.clock.now(), object, transition).await;
    }

    /// Runs CPU-bound work: policies.
    pub(crate) async fn compute<T: Send + 'static>(
        &self,
        is_local: bool,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        computed(&self.stopping, self.processors.run(is_local, work)).await
    }
}
