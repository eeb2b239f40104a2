//! What every pass needs: the cluster as it is watched, the policies, the way to the API server, and time.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use kaos_policy::contract::ResourceType;
use kube::Client;
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    api::Calls,
    ending::computed,
    error::{CallError, Class},
    events::Events,
    held_back::HeldBack,
    memory::Memories,
    projection::Projections,
    times::Transition,
};
use crate::{
    catalogue::{Answers, Catalogue, Renderers},
    metrics::{Metrics, Tally},
    processors::Processors,
    watch::{Served, Watch},
};

/// The time of day, for what is written into objects. Everything else uses tokio's time.
#[derive(Debug, Clone, Copy, Default)]
pub enum Clock {
    /// The machine's.
    #[default]
    System,
    /// What tokio's time makes of a moment: under paused time, the same in every run.
    Since(Timestamp, Instant),
}

impl Clock {
    /// A clock that counts on from a moment with tokio's time.
    pub fn starting_at(moment: Timestamp) -> Self {
        Self::Since(moment, Instant::now())
    }

    /// Now.
    pub fn now(&self) -> Timestamp {
        match self {
            Self::System => Timestamp::now(),
            Self::Since(moment, start) => moment.saturating_add(start.elapsed()).unwrap_or(*moment),
        }
    }
}

/// How a pass behaves; part of the operator's options.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    /// How long until an object is looked at again although nothing happened.
    pub(crate) resync: Duration,
    /// How long cleanup may hold an object.
    pub(crate) cleanup: Duration,
    /// Whether what pods refer to rolls them, Secrets among it.
    pub(crate) rolls: bool,
    pub(crate) clock: Clock,
}

/// What every pass needs.
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
    /// Cancelled when the operator ends.
    pub(crate) stopping: CancellationToken,
    pub(crate) processors: Processors,
}

impl Context {
    /// How many objects of each kind wait for their first pass with the policy that answers now.
    pub(crate) fn awaiting_policy(&self) -> Vec<(ResourceType, usize)> {
        let Some(snapshot) = self.catalogue.load() else { return Vec::new() };
        let awaiting = |(of, answers): (&ResourceType, &Answers)| {
            let made = self.memories.made_since(of, answers.since);
            (of.clone(), self.watch.keys(of).len().saturating_sub(made))
        };
        snapshot.kinds().map(awaiting).collect()
    }

    /// How the objects of each kind stand; of a kind that something answers for, also when there are none.
    pub(crate) fn tallies(&self) -> BTreeMap<ResourceType, Tally> {
        let mut tallies = self.memories.tallies();
        if let Some(snapshot) = self.catalogue.load() {
            for (of, _) in snapshot.kinds() {
                tallies.entry(of.clone()).or_default();
            }
        }
        tallies
    }

    /// How a type is addressed now.
    pub(crate) fn served(&self, of: &ResourceType) -> Result<Served, CallError> {
        self.watch.served(of).ok_or_else(|| CallError {
            what: format!("find {of}"),
            class: Class::Gone,
            message: "the cluster does not serve this type now".to_owned(),
        })
    }

    /// The calls on a type in a namespace.
    pub(crate) fn calls(&self, served: &Served, namespace: &str) -> Calls<'_> {
        Calls::namespaced(&self.client, &served.resource, namespace)
    }

    /// The object that a pass works on as the server has it; none if it is gone, or another one by now.
    pub(super) async fn read_again(&self, served: &Served, object: &Value) -> Result<Option<Value>, CallError> {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        let live = self.calls(served, text("namespace")).get(text("name")).await?;
        Ok(live.filter(|live| live["metadata"]["uid"] == object["metadata"]["uid"]))
    }

    /// Tells what changed about an object.
    pub(crate) async fn tell(&self, object: &Value, transition: &Transition) {
        self.events.write(&self.client, self.rules.clock.now(), object, transition).await;
    }

    /// Does work that takes a processor: runs policies.
    pub(crate) async fn compute<T: Send + 'static>(
        &self,
        is_local: bool,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        computed(&self.stopping, self.processors.run(is_local, work)).await
    }
}
