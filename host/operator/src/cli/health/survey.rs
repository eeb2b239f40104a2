//! Gives the console the same answers about objects as the commands `why`, `tree` and `events`. The console has most
//! objects from its watches. A survey sends requests only for the other objects, such as pods, volume claims,
//! ConfigMaps and Events.

use std::{collections::BTreeSet, sync::Arc};

use kaos_policy::contract::{Cluster, Reference};
use kube::Client;
use serde_json::Value;

use super::{
    answer::{CauseAnswer, EventAnswer, TreeAnswer},
    events,
    graph::{Graph, UseSight},
    object_health::{Health, HealthState},
    read::{FollowedObjects, StateReader},
    rights::MissingRight,
    state::{health, health_of_claimed},
    trace::{Relation, Tracer},
    tree::Drawing,
};
use crate::{
    catalogue::Snapshot,
    input::Identity,
    live::{Gathered, KnownObjects},
};

/// The inputs of a survey.
#[derive(Clone)]
pub(in crate::cli) struct Sources {
    pub(in crate::cli) client: Client,
    /// The facts about the operator's cluster.
    pub(in crate::cli) cluster: Cluster,
    /// The policies that serve.
    pub(in crate::cli) snapshot: Arc<Snapshot>,
    /// The objects that the caller has already read.
    pub(in crate::cli) known: Arc<dyn KnownObjects>,
}

/// Reads some objects, the objects that they use, and their children and pods.
pub(in crate::cli) struct Survey {
    reader: StateReader,
    known: Arc<dyn KnownObjects>,
    home: String,
    followed: BTreeSet<Identity>,
}

impl Survey {
    /// Starts without any objects.
    pub(in crate::cli) fn new(sources: &Sources) -> Self {
        let Sources { client, cluster, snapshot, known } = sources.clone();
        let gathered = Gathered::knowing(client.clone(), Arc::clone(&known));
        let home = cluster.operator_namespace.clone();
        Self { reader: StateReader::with(gathered, client, cluster, snapshot), known, home, followed: BTreeSet::new() }
    }

    /// Reads the objects that `tops` use, over at most `steps` steps.
    pub(in crate::cli) async fn uses(&mut self, tops: &[Arc<Value>], steps: usize) -> anyhow::Result<()> {
        for top in tops {
            self.reader.add(top);
            self.followed.insert(Identity::from(&Reference::of_object(top)));
        }
        for _ in 0..steps {
            self.reader.follow_only(self.followed.clone());
            self.reader.uses(FollowedObjects::All).await?;
            let (graph, before) = (self.reader.graph(), self.followed.len());
            for object in self.followed.clone() {
                let used = graph.uses(&object).iter().filter_map(|used| match &used.sight {
                    UseSight::There(other) => Some(other.clone()),
                    UseSight::Absent | UseSight::NotRead => None,
                });
                self.followed.extend(used);
            }
            if self.followed.len() == before {
                break;
            }
        }
        Ok(())
    }

    /// Reads the children of the objects that the survey has read so far. Also reads the pods of each workload that is
    /// not ready, and of each workload of the object `whole`.
    pub(in crate::cli) async fn below(&mut self, whole: Option<&Identity>) -> anyhow::Result<()> {
        let graph = self.reader.graph();
        let owners = graph.documents().iter().filter(|document| graph.is_claimed(&document.identity));
        for owner in owners {
            let is_whole = whole == Some(&owner.identity);
            if !is_whole && !graph.is_open(&owner.identity) {
                continue;
            }
            let uid = owner.object["metadata"]["uid"].as_str().unwrap_or_default();
            for child in self.known.owned_by(uid) {
                self.reader.add(&child);
                if is_whole || health(&child).state.is_open() {
                    self.reader.pods_of(&child).await?;
                }
            }
        }
        Ok(())
    }

    /// Reads the Events of a namespace.
    pub(in crate::cli) async fn events(&mut self, namespace: &str) -> anyhow::Result<()> {
        self.reader.events(namespace).await
    }

    /// Finds the connections between the objects that the survey has read.
    pub(in crate::cli) fn answer(self) -> SurveyAnswer {
        let is_unwatched = self.reader.has_fetched();
        SurveyAnswer { graph: self.reader.graph(), home: self.home, missing: self.reader.missing(), is_unwatched }
    }
}

/// The objects of a survey with their connections.
pub(in crate::cli) struct SurveyAnswer {
    graph: Graph,
    home: String,
    /// The rights that the user lacks.
    pub(in crate::cli) missing: Vec<MissingRight>,
    /// Whether the survey has read objects that the caller does not watch.
    pub(in crate::cli) is_unwatched: bool,
}

impl SurveyAnswer {
    /// Returns why an object is not ready, as root causes. For a ready object, returns the causes in the objects that
    /// it uses.
    pub(in crate::cli) fn causes(&self, top: &Identity) -> Vec<CauseAnswer> {
        let tracer = Tracer { graph: &self.graph, home: &self.home, is_partial: !self.missing.is_empty() };
        let chains = match self.graph.health(top).state {
            HealthState::Ready => tracer.causes_in_uses(top),
            _ => tracer.causes(top),
        };
        chains.iter().map(Into::into).collect()
    }

    /// Returns an object with the objects that it uses, its children and its pods.
    pub(in crate::cli) fn tree(&self, top: &Identity) -> TreeAnswer {
        Drawing { graph: &self.graph, is_whole: false }.entry(top, Relation::Top, &mut Vec::new())
    }

    /// Returns the Events of an object and of everything below it, the oldest first.
    pub(in crate::cli) fn events(&self, top: &Identity) -> Vec<EventAnswer> {
        events::found(&self.graph, top)
    }

    /// Returns all objects of the survey without Events, also those that do not exist.
    pub(in crate::cli) fn objects(&self) -> impl Iterator<Item = Identity> {
        let all = self.graph.documents().iter().map(|document| &document.identity);
        all.filter(|identity| identity.kind != "Event").flat_map(move |identity| {
            let used = self.uses(identity);
            std::iter::once(identity.clone()).chain(used)
        })
    }

    /// Returns the objects that an object uses, also those that do not exist.
    pub(in crate::cli) fn uses(&self, top: &Identity) -> Vec<Identity> {
        self.graph.uses(top).iter().map(|used| Identity::from(&used.reference)).collect()
    }
}

/// Returns the state of an object, and a line about it.
pub(in crate::cli) fn state_of(object: &Value, is_claimed: bool) -> (HealthState, String) {
    let Health { state, line } = if is_claimed { health_of_claimed(object) } else { health(object) };
    (state, line)
}
