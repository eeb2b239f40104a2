//! The handle to a cluster, for tests and demonstrations.

use std::{
    collections::BTreeMap,
    fmt, io,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use fastrand::Rng;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::{
    access::Access,
    bootstrap,
    clock::{self, Clock, SystemClock},
    controllers::{Controller, Controllers, Fates, PodFate},
    faults::{Attempt, FaultPlan, Journal, NoFaults},
    http::{ClusterService, Server},
    inner::Inner,
    lock::lock,
    run, signal,
    state::State,
    storage::{GroupResource, Key, key_of},
};

/// Default maximum number of changes that the watch log keeps for each resource type.
const CHANGES: usize = 4096;
/// Default maximum number of requests that the journal keeps.
const REQUESTS: usize = 200_000;
/// Default maximum number of Events that the cluster keeps.
const EVENTS: usize = 100_000;

/// The options of a new cluster.
pub struct Builder {
    seed: u64,
    clock: Arc<dyn Clock>,
    plan: Box<dyn FaultPlan>,
    controllers: bool,
    changes: usize,
    requests: usize,
    events: usize,
    instead: Option<String>,
}

impl Builder {
    /// Sets the seed of UIDs, generated names and faults.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets the clock for timestamps.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Sets the plan of faults.
    #[must_use]
    pub fn faults(mut self, plan: impl FaultPlan + 'static) -> Self {
        self.plan = Box::new(plan);
        self
    }

    /// Limits the memory of a long-running cluster. The watch log keeps the last `changes` changes of each type.
    /// Watches from older revisions get 410. The journal keeps the last `requests` requests.
    #[must_use]
    pub fn history(mut self, changes: usize, requests: usize) -> Self {
        self.changes = changes;
        self.requests = requests;
        self
    }

    /// Sets the number of Events that the cluster keeps. Above this number, the controllers delete the oldest Events.
    #[must_use]
    pub fn events(mut self, most: usize) -> Self {
        self.events = most;
        self
    }

    /// Turns off the controllers: Deployments get no pods, and there is no garbage collection. The cluster still serves
    /// the types of CustomResourceDefinitions.
    #[must_use]
    pub fn without_controllers(mut self) -> Self {
        self.controllers = false;
        self
    }

    /// Adds a hint to the error for unknown paths. Real servers give no such hint.
    #[must_use]
    pub fn instead(mut self, there_is: impl Into<String>) -> Self {
        self.instead = Some(there_is.into());
        self
    }

    /// Starts the cluster on the current tokio runtime.
    pub fn start(self) -> Cluster {
        let mut state = State::new(self.seed, self.changes, self.events);
        bootstrap::fill(&mut state, &clock::text(self.clock.now()));
        let inner = Inner {
            settled: signal::Sender::default(),
            cuts: signal::Sender::default(),
            state: Mutex::new(state),
            controllers: Mutex::new(Controllers::new(self.controllers)),
            fates: Mutex::new(Fates::default()),
            plan: Mutex::new((self.plan, Rng::with_seed(self.seed ^ 0x5eed))),
            access: Mutex::new(Access::default()),
            users: Mutex::new(BTreeMap::new()),
            journal: Journal::new(self.requests),
            logs: Arc::default(),
            clock: self.clock,
            instead: self.instead,
            poke: Arc::new(Notify::new()),
        };
        let inner = Arc::new(inner);
        run::spawn(&inner);
        Cluster(inner)
    }
}

/// A handle to an embedded cluster. All clones share one cluster. The cluster ends when the caller drops the last
/// clone.
#[derive(Clone)]
pub struct Cluster(Arc<Inner>);

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").field("revision", &self.revision()).finish_non_exhaustive()
    }
}

impl Cluster {
    /// Returns a builder with the system clock, seed 0 and no faults.
    pub fn builder() -> Builder {
        Builder {
            seed: 0,
            clock: Arc::new(SystemClock),
            plan: Box::new(NoFaults),
            controllers: true,
            changes: CHANGES,
            requests: REQUESTS,
            events: EVENTS,
            instead: None,
        }
    }

    /// Starts a cluster with the default options.
    pub fn start() -> Self {
        Self::builder().start()
    }

    /// Returns a service for clients in this process.
    pub fn service(&self) -> ClusterService {
        ClusterService::new(Arc::clone(&self.0))
    }

    /// Serves the cluster over TCP. For port 0, the system chooses a free port.
    pub async fn listen(&self, address: SocketAddr) -> io::Result<Server> {
        Server::start(self.service(), address).await
    }

    /// Returns the journal of requests.
    pub fn journal(&self) -> &Journal {
        &self.0.journal
    }

    /// Replaces the plan of faults.
    pub fn set_faults(&self, plan: impl FaultPlan + 'static) {
        lock(&self.0.plan).0 = Box::new(plan);
    }

    /// Sets the fate of all pods without a fate from [`Self::set_pods_of`] or [`Self::set_pods_with_image`].
    pub fn set_pods(&self, fate: PodFate) {
        lock(&self.0.fates).set_general(fate);
        self.revisit_pods();
    }

    /// Sets the fate of the pods of one Deployment. `None` removes this fate again.
    pub fn set_pods_of(&self, namespace: &str, deployment: &str, fate: Option<PodFate>) {
        lock(&self.0.fates).set(namespace, deployment, fate);
        self.revisit_pods();
    }

    /// Sets the fate of the pods that have a container with this image. A fate from [`Self::set_pods_of`] wins.
    pub fn set_pods_with_image(&self, image: &str, fate: PodFate) {
        lock(&self.0.fates).set_image(image, fate);
        self.revisit_pods();
    }

    /// Adds a line to the log of a container. The cluster runs no containers, so all logs come from tests.
    pub fn write_log(&self, namespace: &str, pod: &str, container: &str, line: &str) {
        self.0.logs.write([namespace, pod, container].map(str::to_owned), line);
    }

    /// Ends the log of a container. Requests that follow the log then end, too.
    pub fn end_log(&self, namespace: &str, pod: &str, container: &str) {
        self.0.logs.end([namespace, pod, container].map(str::to_owned));
    }

    fn revisit_pods(&self) {
        let state = lock(&self.0.state);
        lock(&self.0.controllers).revisit_pods(&state);
        drop(state);
        self.0.poke.notify_one();
    }

    /// Pauses a controller, to simulate a restart or a delay of a real controller.
    pub fn send_away(&self, controller: Controller) {
        lock(&self.0.controllers).send_away(controller);
    }

    /// Resumes a controller. The resumed controller processes all work that has waited in the meantime.
    pub fn call_back(&self, controller: Controller) {
        lock(&self.0.controllers).call_back(controller);
        self.0.poke.notify_one();
    }

    /// Makes the cluster report version 1.`minor` of Kubernetes from now on. The served types stay the same.
    pub fn say_minor(&self, minor: u32) {
        lock(&self.0.state).minor = minor;
    }

    /// Allows only requests for which `allow` returns true. Answers other requests with 403. The cluster calls `allow`
    /// while it holds its lock, so `allow` must not send requests to the cluster.
    pub fn authorise(&self, allow: impl Fn(&Attempt) -> bool + Send + Sync + 'static) {
        *lock(&self.0.access) = Access::Rule(Arc::new(allow));
    }

    /// Decides access by the stored Roles and bindings. The user `admin` has all rights. Other users need bindings. The
    /// user name of a service account is `system:serviceaccount:<namespace>:<name>`.
    pub fn authorise_by_rbac(&self) {
        *lock(&self.0.access) = Access::Rbac;
    }

    /// Decides access by the stored Roles and bindings, and denies all requests for which `allow` returns false, as a
    /// webhook would. The answer to a `SelfSubjectRulesReview` lists the RBAC rules of the Roles, and says that the
    /// list is incomplete, as on a real server.
    pub fn authorise_by_rbac_behind(&self, allow: impl Fn(&Attempt) -> bool + Send + Sync + 'static) {
        *lock(&self.0.access) = Access::Guarded(Arc::new(allow));
    }

    /// Allows every request of every user. This is the state of a new cluster.
    pub fn allow_everything(&self) {
        *lock(&self.0.access) = Access::default();
    }

    /// Maps a bearer token to a user name. Without a mapping, the token itself is the user name.
    pub fn add_user(&self, token: &str, name: &str) {
        lock(&self.0.users).insert(token.to_owned(), name.to_owned());
    }

    /// Returns the revision of the last write.
    pub fn revision(&self) -> u64 {
        self.0.revision()
    }

    /// Removes old revisions from the log. Watches and paged lists from an older revision get 410.
    pub fn compact(&self) {
        let mut state = lock(&self.0.state);
        state.store.compact();
        state.snapshots.clear();
    }

    /// Disconnects all watches.
    pub fn cut_watches(&self) {
        self.0.cuts.bump();
    }

    /// Returns a stored object, or `None` if the object does not exist. Faults and missing rights have no effect.
    pub fn object(&self, group: &str, plural: &str, namespace: &str, name: &str) -> Option<Arc<Value>> {
        lock(&self.0.state).store.get(&GroupResource::new(group, plural), &Key::new(namespace, name)).cloned()
    }

    /// Returns all objects of a type.
    pub fn objects(&self, group: &str, plural: &str) -> Vec<Arc<Value>> {
        let state = lock(&self.0.state);
        state.store.list(&GroupResource::new(group, plural), "").map(|(_, object)| Arc::clone(object)).collect()
    }

    /// Stores an object without checks. So a test can create an object that an older server stored with an older
    /// schema. Adds a UID and a creation time if the object has none.
    pub fn plant(&self, group: &str, plural: &str, mut object: Value) -> Arc<Value> {
        let now = clock::text(self.0.now());
        let mut state = lock(&self.0.state);
        if object["metadata"]["uid"].is_null() {
            object["metadata"]["uid"] = json!(state.uid());
        }
        if object["metadata"]["creationTimestamp"].is_null() {
            object["metadata"]["creationTimestamp"] = json!(now);
        }
        let key = key_of(&object);
        state.store.put(&GroupResource::new(group, plural), &key, object)
    }

    /// Waits until the controllers have done all work that is due now. Does not wait for timers, such as a pod that
    /// becomes ready later.
    pub async fn settled(&self) {
        let mut settled = self.0.settled.subscribe();
        settled.reaches(self.revision()).await;
    }
}
