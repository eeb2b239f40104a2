//! The objects and the policies of a cluster, in memory.

use std::{
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
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;

use super::{
    counts::{Count, GroupKey},
    groups::Groups,
    objects::{KeptObject, Objects, Unconnected},
    open_pages::{Change, OpenPage, OpenPages},
    places::Places,
    reads::Reads,
    watch_states::WatchStates,
};
use crate::{
    catalogue::{Catalogue, Snapshot},
    cli::{
        facts::OperatorFacts,
        health::Sources,
        policy::{ServingPolicies, serving_policies},
    },
    input::Identity,
    live::{Gathered, KnownObjects, KnownType, RememberedRead},
    locking::lock,
    watch::Served,
};

/// The kind of the objects in which the operator records policies.
pub(super) const RECORD: (&str, &str) = ("kaos.tools/v1alpha1", "PolicyRevision");

/// The objects and policies of a cluster.
pub(in crate::cli::console) struct Model {
    pub(super) client: Client,
    pub(super) operator: OperatorFacts,
    pub(super) places: Places,
    /// The policies. If the console reads the same policy again, the catalogue keeps its old entry.
    catalogue: Catalogue,
    serving: Mutex<Arc<ServingPolicies>>,
    /// A number that grows with each change of the policies.
    policies: AtomicU64,
    objects: Mutex<Objects>,
    pub(super) reports: Mutex<WatchStates>,
    reads: Mutex<Reads>,
    open: Arc<OpenPages>,
    /// Signals that the connections of some objects are unknown or outdated.
    asked: Notify,
    /// Signals that a record changed.
    pub(super) recorded: Notify,
    slots: Arc<Semaphore>,
    /// The number of objects for which the console asked the policies in the background.
    #[cfg(test)]
    pub(in crate::cli::console) evaluations: AtomicU64,
}

impl Model {
    /// Creates a model without objects.
    pub(super) fn new(
        client: Client,
        operator: OperatorFacts,
        places: Places,
        (catalogue, serving): (Catalogue, ServingPolicies),
    ) -> Self {
        Self {
            client,
            operator,
            places,
            catalogue,
            serving: Mutex::new(Arc::new(serving)),
            policies: AtomicU64::new(1),
            objects: Mutex::default(),
            reports: Mutex::default(),
            reads: Mutex::default(),
            open: Arc::default(),
            asked: Notify::new(),
            recorded: Notify::new(),
            slots: Arc::new(Semaphore::new(available_parallelism().map_or(1, usize::from).max(2))),
            #[cfg(test)]
            evaluations: AtomicU64::new(0),
        }
    }

    /// Reads which policies serve.
    pub(super) async fn read_policies(&self) -> anyhow::Result<ServingPolicies> {
        serving_policies(&self.client, &self.operator, &self.catalogue).await
    }

    /// Replaces the policies. If the same policies answer for an object as before, the object keeps its connections.
    pub(super) fn serve(&self, serving: ServingPolicies) {
        let now = Arc::new(serving);
        let before = std::mem::replace(&mut *lock(&self.serving), Arc::clone(&now));
        if before.note == now.note && is_same(&before.snapshot, &now.snapshot) {
            return;
        }
        self.policies.fetch_add(1, Ordering::Relaxed);
        self.lock().disconnect(|of, Identity { namespace, name, .. }| {
            !now.snapshot.is_as_in(&before.snapshot, of, namespace.as_deref().unwrap_or_default(), name)
        });
        self.asked.notify_one();
        self.open.tell_all();
    }

    /// Returns a text with the name and the state of each record.
    pub(super) fn records(&self) -> Vec<String> {
        let state = |record: &Arc<Value>| {
            let (metadata, status) = (&record["metadata"], &record["status"]);
            let [state, since, rollout] = ["state", "since", "rollout"].map(|field| &status[field]);
            format!("{} {} {state} {since} {rollout}", metadata["name"], metadata["generation"])
        };
        self.revisions().iter().map(state).collect()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Objects> {
        lock(&self.objects)
    }

    /// Wakes the pages that show one of the changes.
    pub(super) fn tell(&self, changes: &[Change]) {
        if !changes.is_empty() {
            self.open.tell(changes);
            self.asked.notify_one();
        }
    }

    /// Wakes all pages.
    pub(super) fn tell_all(&self) {
        self.open.tell_all();
    }

    /// Returns up to `most` objects with unknown connections, and a number that grows with each change of the policies.
    pub(super) fn unconnected(&self, most: usize) -> (u64, Vec<Unconnected>) {
        let policies = self.policies.load(Ordering::Relaxed);
        (policies, self.lock().unconnected(most))
    }

    /// Waits until the connections of an object may be unknown.
    pub(super) async fn has_unconnected(&self) {
        self.asked.notified().await;
    }

    /// Records which objects the objects in `found` use.
    ///
    /// Does nothing if the policies changed since their number was `policies`.
    pub(super) fn connect(&self, policies: u64, found: Vec<(Unconnected, Vec<Identity>)>) {
        let mut objects = self.lock();
        if self.policies.load(Ordering::Relaxed) != policies {
            return;
        }
        let changes = found.into_iter().filter_map(|(it, uses)| objects.connect(&it.identity, it.wanted, uses));
        let changes: Vec<Change> = changes.collect();
        drop(objects);
        if !changes.is_empty() {
            self.open.tell(&changes);
        }
    }

    /// Runs the long computation `work` without delaying other tasks. If the caller no longer wants the result, `work`
    /// ends at its next request, or when it checks its cancellation token. Slots limit the number of computations at
    /// the same time: `work` keeps its slot until it ends.
    pub(in crate::cli::console) async fn blocking<T: Send + 'static>(
        &self,
        work: impl AsyncFnOnce(CancellationToken) -> anyhow::Result<T> + Send + 'static,
    ) -> anyhow::Result<T> {
        let slot = Arc::clone(&self.slots).acquire_owned().await?;
        let unwanted = CancellationToken::new();
        let _until_answered = unwanted.clone().drop_guard();
        let handle = tokio::runtime::Handle::current();
        let done = tokio::task::spawn_blocking(move || {
            let _slot = slot;
            handle.block_on(unwanted.run_until_cancelled(work(unwanted.clone())))
        });
        done.await.context("the page could not be made")?.context("the browser does not want the page any more")?
    }

    #[cfg(test)]
    pub(super) fn free_slots(&self) -> usize {
        self.slots.available_permits()
    }

    /// Registers an open page.
    pub(in crate::cli::console) fn open_page(&self) -> OpenPage {
        self.open.open()
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
        &self.operator.cluster
    }

    /// Returns the inputs of a survey.
    pub(in crate::cli::console) fn sources(self: &Arc<Self>) -> Sources {
        let known: Arc<dyn KnownObjects> = Arc::<Self>::clone(self);
        Sources {
            client: self.client.clone(),
            cluster: self.operator.cluster.clone(),
            snapshot: self.snapshot(),
            known,
        }
    }

    /// Returns a reader of objects. Before the reader sends a request, it looks for the objects in this model.
    pub(in crate::cli::console) fn gathered(self: &Arc<Self>) -> Gathered {
        Gathered::knowing(self.client.clone(), Arc::<Self>::clone(self))
    }

    /// Returns an object.
    pub(in crate::cli::console) fn object(&self, identity: &Identity) -> Option<KeptObject> {
        self.lock().get(identity).cloned()
    }

    /// Calls a function with every object for which a policy answers, sorted.
    pub(in crate::cli::console) fn with_claimed<T>(
        &self,
        look: impl FnOnce(&mut dyn Iterator<Item = (&Identity, &KeptObject)>) -> T,
    ) -> T {
        look(&mut self.lock().claimed())
    }

    /// Returns the numbers of the objects for which a policy answers, by namespace and kind.
    pub(in crate::cli::console) fn counts(&self) -> Vec<(GroupKey, Count)> {
        self.lock().counts().iter().map(|(key, count)| (key.clone(), count)).collect()
    }

    /// Groups the objects for which `is_wanted` returns true, by namespace and kind.
    pub(in crate::cli::console) fn groups(&self, is_wanted: impl Fn(&Identity, &KeptObject) -> bool) -> Groups {
        Groups::of(&self.lock(), is_wanted)
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
}

impl KnownObjects for Model {
    fn find(&self, target: &Target) -> Option<Vec<Arc<Value>>> {
        self.lock().find(target)
    }

    fn served(&self, of: &ResourceType) -> KnownType {
        let known = self.lock().served(of);
        if known == KnownType::Unasked { lock(&self.reads).served(of) } else { known }
    }

    fn owned_by(&self, uid: &str) -> Vec<Arc<Value>> {
        self.lock().owned_by(uid)
    }

    fn remembered(&self, target: &Target) -> Option<RememberedRead> {
        lock(&self.reads).find(target)
    }

    fn learn(&self, of: &ResourceType, served: Option<&Served>) {
        lock(&self.reads).learn(of, served.cloned());
    }

    fn remember(&self, target: &Target, read: RememberedRead) {
        lock(&self.reads).add(target, read);
    }
}

/// Returns whether the same policies answer for every object.
fn is_same(one: &Snapshot, other: &Snapshot) -> bool {
    let kinds = |it: &Snapshot| it.kinds().map(|(of, answers)| (of.clone(), answers.since)).collect::<Vec<_>>();
    let stages = |it: &Snapshot| {
        let stages = it.staging().stages.iter();
        stages
            .map(|stage| (Arc::clone(&stage.revision), stage.moved.clone(), stage.can_yield, stage.is_lost))
            .collect::<Vec<_>>()
    };
    kinds(one) == kinds(other) && stages(one) == stages(other)
}
