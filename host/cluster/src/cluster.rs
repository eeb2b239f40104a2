//! The cluster as tests and demonstrations hold it.

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

/// Changes of each type that a watch can start from, unless the builder says otherwise.
const CHANGES: usize = 4096;
/// Requests in the journal, unless the builder says otherwise.
const REQUESTS: usize = 200_000;

/// How a cluster starts.
pub struct Builder {
    seed: u64,
    clock: Arc<dyn Clock>,
    plan: Box<dyn FaultPlan>,
    controllers: bool,
    changes: usize,
    requests: usize,
    instead: Option<String>,
}

impl Builder {
    /// What UIDs, generated names and faults are drawn from.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// The clock that timestamps are taken from.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// What goes wrong.
    #[must_use]
    pub fn faults(mut self, plan: impl FaultPlan + 'static) -> Self {
        self.plan = Box::new(plan);
        self
    }

    /// Limits the memory of a cluster that runs for long. Watches can start from the last `changes` changes of each type,
    /// and older ones are answered with 410. The journal keeps the last `requests` requests.
    #[must_use]
    pub fn history(mut self, changes: usize, requests: usize) -> Self {
        self.changes = changes;
        self.requests = requests;
        self
    }

    /// Leaves out all behaviour: Deployments get no pods, nothing is collected. Definitions are served all the same.
    #[must_use]
    pub fn without_controllers(mut self) -> Self {
        self.controllers = false;
        self
    }

    /// Says what there is to whoever asks for what is not served. A real server says no more than that it is not.
    #[must_use]
    pub fn instead(mut self, there_is: impl Into<String>) -> Self {
        self.instead = Some(there_is.into());
        self
    }

    /// Starts it on the current tokio runtime.
    pub fn start(self) -> Cluster {
        let mut state = State::new(self.seed, self.changes);
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
            clock: self.clock,
            instead: self.instead,
            poke: Arc::new(Notify::new()),
        };
        let inner = Arc::new(inner);
        run::spawn(&inner);
        Cluster(inner)
    }
}

/// A handle to an embedded cluster. Clones are the same cluster; it ends with the last of them.
#[derive(Clone)]
pub struct Cluster(Arc<Inner>);

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").field("revision", &self.revision()).finish_non_exhaustive()
    }
}

impl Cluster {
    /// A cluster with the machine's clock, seed 0 and no faults, to be changed before it starts.
    pub fn builder() -> Builder {
        Builder {
            seed: 0,
            clock: Arc::new(SystemClock),
            plan: Box::new(NoFaults),
            controllers: true,
            changes: CHANGES,
            requests: REQUESTS,
            instead: None,
        }
    }

    /// Starts one as it is.
    pub fn start() -> Self {
        Self::builder().start()
    }

    /// A way in for clients of this process.
    pub fn service(&self) -> ClusterService {
        ClusterService::new(Arc::clone(&self.0))
    }

    /// A way in over TCP; port 0 takes a free one.
    pub async fn listen(&self, address: SocketAddr) -> io::Result<Server> {
        Server::start(self.service(), address).await
    }

    /// The requests so far.
    pub fn journal(&self) -> &Journal {
        &self.0.journal
    }

    /// Changes what goes wrong from now on.
    pub fn set_faults(&self, plan: impl FaultPlan + 'static) {
        lock(&self.0.plan).0 = Box::new(plan);
    }

    /// Changes what becomes of pods that belong to no Deployment named by [`Self::set_pods_of`].
    pub fn set_pods(&self, fate: PodFate) {
        lock(&self.0.fates).set_general(fate);
        self.revisit_pods();
    }

    /// Changes what becomes of the pods of one Deployment; `None` lets them go the general way.
    pub fn set_pods_of(&self, namespace: &str, deployment: &str, fate: Option<PodFate>) {
        lock(&self.0.fates).set(namespace, deployment, fate);
        self.revisit_pods();
    }

    fn revisit_pods(&self) {
        let state = lock(&self.0.state);
        lock(&self.0.controllers).revisit_pods(&state);
        drop(state);
        self.0.poke.notify_one();
    }

    /// Sends a controller away, as if it restarted or were late.
    pub fn send_away(&self, controller: Controller) {
        lock(&self.0.controllers).send_away(controller);
    }

    /// Has a controller come back to what waits for it.
    pub fn call_back(&self, controller: Controller) {
        lock(&self.0.controllers).call_back(controller);
        self.0.poke.notify_one();
    }

    /// Has it say from now on that it is Kubernetes 1 of this second number. It serves what it served.
    pub fn say_minor(&self, minor: u32) {
        lock(&self.0.state).minor = minor;
    }

    /// Lets only those requests through that `allow` accepts; others are answered with 403. The rule is asked while the
    /// cluster is locked, so it must not ask the cluster anything.
    pub fn authorise(&self, allow: impl Fn(&Attempt) -> bool + Send + Sync + 'static) {
        *lock(&self.0.access) = Access::Rule(Arc::new(allow));
    }

    /// Lets the Roles and bindings that are stored decide. The user `admin` may do everything; others are named by
    /// bindings, service accounts as `system:serviceaccount:<namespace>:<name>`.
    pub fn authorise_by_rbac(&self) {
        *lock(&self.0.access) = Access::Rbac;
    }

    /// Lets everybody do everything, as at the start.
    pub fn allow_everything(&self) {
        *lock(&self.0.access) = Access::default();
    }

    /// Gives the bearer of a token a name. A token without one is its own name.
    pub fn add_user(&self, token: &str, name: &str) {
        lock(&self.0.users).insert(token.to_owned(), name.to_owned());
    }

    /// The revision of the last write.
    pub fn revision(&self) -> u64 {
        self.0.revision()
    }

    /// Forgets old revisions: watches and paged lists that start from one are answered with 410.
    pub fn compact(&self) {
        let mut state = lock(&self.0.state);
        state.store.compact();
        state.snapshots.clear();
    }

    /// Breaks every watch.
    pub fn cut_watches(&self) {
        self.0.cuts.bump();
    }

    /// An object as it is stored, whatever faults and access rules say.
    pub fn object(&self, group: &str, plural: &str, namespace: &str, name: &str) -> Option<Arc<Value>> {
        lock(&self.0.state).store.get(&GroupResource::new(group, plural), &Key::new(namespace, name)).cloned()
    }

    /// All objects of a type.
    pub fn objects(&self, group: &str, plural: &str) -> Vec<Arc<Value>> {
        let state = lock(&self.0.state);
        state.store.list(&GroupResource::new(group, plural), "").map(|(_, object)| Arc::clone(object)).collect()
    }

    /// Stores an object as it is: unchecked, as an older server with an older schema might have left it. A missing UID
    /// and creation time are filled in.
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

    /// Waits until the controllers have nothing left to do now. What they will do later (a pod that takes its time) is
    /// not waited for.
    pub async fn settled(&self) {
        let mut settled = self.0.settled.subscribe();
        settled.reaches(self.revision()).await;
    }
}
