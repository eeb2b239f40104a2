//! The objects and the policies of a cluster, in memory.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering},
    },
    thread::available_parallelism,
};

use anyhow::Context as _;
use kaos_policy::contract::{Cluster, ResourceType, Target};
use kube::Client;
use serde_json::Value;
use tokio::sync::{Semaphore, watch};

use super::{
    objects::{KeptObject, Objects, identity_of},
    places::Places,
    watched_type::{Role, WatchedType},
};
use crate::{
    catalogue::Snapshot,
    cli::{
        health::{MissingRight, Sources, resource},
        policy::ServingPolicies,
    },
    input::Identity,
    live::{Gathered, KnownObjects, KnownType},
    locking::lock,
};

/// The kind of the records of policies.
pub(super) const RECORD: (&str, &str) = ("kaos.tools/v1alpha1", "PolicyRevision");

/// The types and namespaces that the user cannot see, for a note on each page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::cli::console) struct Limits {
    pub(in crate::cli::console) places: Places,
    /// Rights that the user lacks in the shown namespaces.
    pub(in crate::cli::console) missing: Vec<MissingRight>,
    /// Watches that fail, each with the reason.
    pub(in crate::cli::console) broken: Vec<String>,
    /// Why only the default policies are known.
    pub(in crate::cli::console) policies: Option<String>,
}

/// The objects and policies of a cluster.
pub(in crate::cli::console) struct Model {
    pub(super) client: Client,
    pub(super) cluster: Cluster,
    pub(super) places: Places,
    objects: Mutex<Objects>,
    serving: Mutex<Arc<ServingPolicies>>,
    /// Grows with each change of the policies.
    policies: AtomicU64,
    watched: Mutex<BTreeSet<ResourceType>>,
    missing: Mutex<BTreeSet<MissingRight>>,
    broken: Mutex<BTreeMap<String, String>>,
    /// Grows with each change.
    version: watch::Sender<u64>,
    slots: Semaphore,
}

impl Model {
    /// Creates a model without objects.
    pub(super) fn new(client: Client, cluster: Cluster, places: Places, serving: ServingPolicies) -> Self {
        Self {
            client,
            cluster,
            places,
            objects: Mutex::default(),
            serving: Mutex::new(Arc::new(serving)),
            policies: AtomicU64::new(1),
            watched: Mutex::default(),
            missing: Mutex::default(),
            broken: Mutex::default(),
            version: watch::Sender::new(0),
            slots: Semaphore::new(available_parallelism().map_or(1, usize::from).max(2)),
        }
    }

    /// Replaces the policies.
    pub(super) fn serve(&self, serving: ServingPolicies) {
        *lock(&self.serving) = Arc::new(serving);
        self.policies.fetch_add(1, Ordering::Relaxed);
        let snapshot = self.snapshot();
        self.lock().claim(|of| snapshot.of(of).is_some());
        self.touch();
    }

    /// Returns whether the console watches a type.
    pub(super) fn is_watched(&self, of: &ResourceType) -> bool {
        lock(&self.watched).contains(of)
    }

    /// Records that the console watches a type.
    pub(super) fn set_watched(&self, of: ResourceType) {
        lock(&self.watched).insert(of);
    }

    /// Returns the states of all records.
    pub(super) fn records(&self) -> Vec<String> {
        let state = |record: &Arc<Value>| {
            let (metadata, status) = (&record["metadata"], &record["status"]);
            format!("{} {} {} {}", metadata["name"], metadata["generation"], status["state"], status["since"])
        };
        self.revisions().iter().map(state).collect()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Objects> {
        lock(&self.objects)
    }

    fn touch(&self) {
        self.version.send_modify(|version| *version += 1);
    }

    pub(super) fn put(&self, object: Value) -> Identity {
        let identity = identity_of(&object);
        let is_claimed = self.snapshot().of(&ResourceType::of_object(&object)).is_some();
        self.lock().put(identity.clone(), object, is_claimed);
        self.touch();
        identity
    }

    pub(super) fn remove(&self, object: &Value) {
        self.lock().remove(&identity_of(object));
        self.touch();
    }

    pub(super) fn listed(&self, WatchedType { of, place, role, .. }: &WatchedType, listed: &BTreeSet<Identity>) {
        self.lock().listed(of, place.as_deref(), listed, *role == Role::Claimed);
        let (right, name) = (self.right(of, place.as_deref()), watch_name(of, place.as_deref()));
        lock(&self.missing).remove(&right);
        lock(&self.broken).remove(&name);
        self.touch();
    }

    pub(super) fn failed(&self, WatchedType { of, place, .. }: &WatchedType, is_refused: bool, why: String) {
        let changed = if is_refused {
            lock(&self.missing).insert(self.right(of, place.as_deref()))
        } else {
            lock(&self.broken).insert(watch_name(of, place.as_deref()), why.clone()) != Some(why)
        };
        if changed {
            self.touch();
        }
    }

    fn right(&self, of: &ResourceType, place: Option<&str>) -> MissingRight {
        let resource = match self.lock().served(of) {
            KnownType::Served(served) => resource(Some(&served.resource.plural), of),
            KnownType::Unserved | KnownType::Unasked => resource(None, of),
        };
        MissingRight { verb: "list", resource, namespace: place.map(str::to_owned) }
    }

    pub(super) fn unconnected(&self, most: usize) -> (u64, Vec<(Identity, u64, Arc<Value>)>) {
        let policies = self.policies.load(Ordering::Relaxed);
        (policies, self.lock().unconnected(policies, most))
    }

    pub(super) fn connect<'a>(&self, found: impl Iterator<Item = (&'a Identity, (u64, u64), Vec<Identity>)>) {
        let mut objects = self.lock();
        for (identity, from, uses) in found {
            objects.connect(identity, from, uses);
        }
        drop(objects);
        self.touch();
    }

    /// Runs work that computes for long, without a delay of other work.
    pub(in crate::cli::console) async fn blocking<T: Send + 'static>(
        &self,
        work: impl AsyncFnOnce() -> anyhow::Result<T> + Send + 'static,
    ) -> anyhow::Result<T> {
        let _slot = self.slots.acquire().await?;
        let handle = tokio::runtime::Handle::current();
        tokio::task::spawn_blocking(move || handle.block_on(work())).await.context("the page could not be made")?
    }

    /// Returns a receiver that sees each change.
    pub(in crate::cli::console) fn changes(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    /// Returns the policies that serve.
    pub(in crate::cli::console) fn serving(&self) -> Arc<ServingPolicies> {
        Arc::clone(&lock(&self.serving))
    }

    pub(super) fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&lock(&self.serving).snapshot)
    }

    /// Returns whether a policy answers for a kind.
    pub(in crate::cli::console) fn is_kind_claimed(&self, group: &str, kind: &str) -> bool {
        self.snapshot().kinds().any(|(of, _)| of.group_kind() == (group, kind))
    }

    /// Returns the facts about the operator's cluster.
    pub(in crate::cli::console) fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Returns what a survey needs.
    pub(in crate::cli::console) fn sources(self: &Arc<Self>) -> Sources {
        let known: Arc<dyn KnownObjects> = Arc::<Self>::clone(self);
        Sources { client: self.client.clone(), cluster: self.cluster.clone(), snapshot: self.snapshot(), known }
    }

    /// Starts to gather objects, from the objects of this model first.
    pub(in crate::cli::console) fn gathered(self: &Arc<Self>) -> Gathered {
        Gathered::knowing(self.client.clone(), Arc::<Self>::clone(self))
    }

    /// Returns an object.
    pub(in crate::cli::console) fn object(&self, identity: &Identity) -> Option<KeptObject> {
        self.lock().get(identity).cloned()
    }

    /// Returns the name and the state of every object for which a policy answers and that `is_wanted`.
    pub(in crate::cli::console) fn claimed(
        &self,
        is_wanted: impl Fn(&Identity, &KeptObject) -> bool,
    ) -> Vec<(Identity, KeptObject)> {
        let objects = self.lock();
        let wanted = objects.claimed().filter(|(identity, kept)| is_wanted(identity, kept));
        wanted.map(|(identity, kept)| (identity.clone(), kept.clone())).collect()
    }

    /// Returns the objects that an object uses, and the objects that use it.
    pub(in crate::cli::console) fn connections(&self, identity: &Identity) -> (Vec<Identity>, Vec<Identity>) {
        let objects = self.lock();
        (objects.uses(identity).to_vec(), objects.users(identity).cloned().collect())
    }

    /// Returns the records of policies, sorted by name.
    pub(in crate::cli::console) fn revisions(&self) -> Vec<Arc<Value>> {
        let group = RECORD.0.split('/').next().unwrap_or_default();
        self.lock().of_kind(group, RECORD.1).map(|kept| Arc::clone(&kept.object)).collect()
    }

    /// Returns what the user cannot see.
    pub(in crate::cli::console) fn limits(&self) -> Limits {
        Limits {
            places: self.places.clone(),
            missing: lock(&self.missing).iter().cloned().collect(),
            broken: lock(&self.broken).iter().map(|(what, why)| format!("{what}: {why}")).collect(),
            policies: self.serving().note.clone(),
        }
    }
}

impl KnownObjects for Model {
    fn find(&self, target: &Target) -> Option<Vec<Arc<Value>>> {
        self.lock().find(target)
    }

    fn served(&self, of: &ResourceType) -> KnownType {
        self.lock().served(of)
    }

    fn owned_by(&self, uid: &str) -> Vec<Arc<Value>> {
        self.lock().owned_by(uid)
    }
}

fn watch_name(of: &ResourceType, place: Option<&str>) -> String {
    match place {
        Some(place) => format!("{} objects in namespace {place} may be out of date", of.kind),
        None => format!("{} objects may be out of date", of.kind),
    }
}
