//! What a console knows about a cluster. Watches keep the objects up to date with the rights of the user, once for all
//! pages.
//!
//! | module | content |
//! |---|---|
//! | `objects` | the objects, their states and their connections |
//! | `watches` | the watches |
//! | `places` | the namespaces that the user may see |
//! | `connections` | asks the policies what each object uses |

mod connections;
mod objects;
mod places;
mod watches;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering},
    },
    thread::available_parallelism,
    time::Duration,
};

use anyhow::Context as _;
use kaos_policy::contract::{Cluster, ResourceType, Target};
use kube::Client;
use serde_json::Value;
use tokio::sync::{Semaphore, watch};

use crate::{
    catalogue::Snapshot,
    cli::{
        health::{MissingRight, Sources, resource},
        output::complain,
        policy::{ServingPolicies, serving_policies},
    },
    discovery,
    error_text::told,
    input::Identity,
    live::{Gathered, KnownObjects},
    locking::lock,
    watch::Served,
};
use objects::{Objects, identity_of};
use watches::{Role, WatchedType};

pub(super) use objects::KeptObject;
pub(super) use places::Places;

/// The kind of the records of policies.
const RECORD: (&str, &str) = ("kaos.tools/v1alpha1", "PolicyRevision");
/// After a change of a record, the console waits for this time before it reads the policies again.
const QUIET: Duration = Duration::from_secs(1);
/// The console also reads the policies at this interval, because settings of the operator have no record.
const REREAD: Duration = Duration::from_mins(5);

/// What the user cannot see, for a note on each page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) places: Places,
    /// Rights that the user lacks in the shown namespaces.
    pub(super) missing: Vec<MissingRight>,
    /// Watches that fail, each with the reason.
    pub(super) broken: Vec<String>,
    /// Why only the default policies are known.
    pub(super) policies: Option<String>,
}

/// The objects and policies of a cluster.
pub(super) struct Model {
    client: Client,
    cluster: Cluster,
    places: Places,
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
    /// Reads the policies, finds the namespaces that the user may see, and starts the watches.
    pub(super) async fn start(client: Client, cluster: Cluster, named: Vec<String>) -> anyhow::Result<Arc<Self>> {
        let serving = Arc::new(serving_policies(&client, &cluster).await?);
        let claimed: Vec<ResourceType> = serving.snapshot.kinds().map(|(of, _)| of.clone()).collect();
        let mut first = None;
        for of in &claimed {
            if let Some(served) = discovery::served(&client, of).await? {
                first = Some((of, served));
                break;
            }
        }
        let places = places::find(&client, first.as_ref().map(|(of, served)| (*of, served)), named).await?;
        let (objects, missing, broken) = (Mutex::default(), Mutex::default(), Mutex::default());
        let slots = Semaphore::new(available_parallelism().map_or(1, usize::from).max(2));
        let (serving, policies, watched) = (Mutex::new(serving), AtomicU64::new(1), Mutex::default());
        let version = watch::Sender::new(0);
        let model = Arc::new(Self {
            client,
            cluster,
            places,
            objects,
            serving,
            policies,
            watched,
            missing,
            broken,
            version,
            slots,
        });
        model.watch().await?;
        tokio::spawn(Arc::clone(&model).follow_policies());
        tokio::spawn(connections::follow(Arc::clone(&model)));
        Ok(model)
    }

    /// Starts the watches that do not run yet.
    async fn watch(self: &Arc<Self>) -> anyhow::Result<()> {
        let snapshot = self.snapshot();
        let mut wanted: BTreeMap<ResourceType, Role> = BTreeMap::new();
        wanted.insert(ResourceType::new(RECORD.0, RECORD.1), Role::Record);
        for of in snapshot.kinds().flat_map(|(_, answers)| answers.claims()).flat_map(|claim| claim.emits.clone()) {
            if !of.is_secret() {
                wanted.insert(of, Role::Child);
            }
        }
        let claims = snapshot.kinds().flat_map(|(_, answers)| answers.claims());
        let wishes: BTreeSet<ResourceType> = claims.flat_map(|claim| claim.wishes.clone()).collect();
        for of in wishes {
            let served = discovery::served(&self.client, &of).await?;
            self.lock().serves(of, served);
        }
        wanted.extend(snapshot.kinds().map(|(of, _)| (of.clone(), Role::Claimed)));
        for (of, role) in wanted {
            if !lock(&self.watched).insert(of.clone()) {
                continue;
            }
            let served = discovery::served(&self.client, &of).await?;
            self.lock().serves(of.clone(), served.clone());
            let Some(served) = served else { continue };
            for place in self.places_of(&served, role) {
                let watched = WatchedType { of: of.clone(), served: served.clone(), place, role };
                tokio::spawn(watches::follow(Arc::clone(self), watched));
            }
        }
        Ok(())
    }

    /// Returns the namespaces in which to watch a type; `None` for the whole cluster.
    fn places_of(&self, served: &Served, role: Role) -> Vec<Option<String>> {
        match &self.places.shown {
            _ if role == Role::Record => vec![Some(self.cluster.operator_namespace.clone())],
            Some(places) if served.namespaced => places.iter().cloned().map(Some).collect(),
            _ => vec![None],
        }
    }

    /// Reads the policies again whenever a record changes.
    async fn follow_policies(self: Arc<Self>) {
        let mut changes = self.changes();
        let mut seen = self.records();
        loop {
            let changed = tokio::time::timeout(REREAD, async {
                while self.records() == seen {
                    if changes.changed().await.is_err() {
                        return;
                    }
                }
                tokio::time::sleep(QUIET).await;
            });
            let _is_due = changed.await;
            seen = self.records();
            let model = Arc::clone(&self);
            let read = self.blocking(async move || serving_policies(&model.client, &model.cluster).await).await;
            let started = match read {
                Ok(serving) => {
                    *lock(&self.serving) = Arc::new(serving);
                    self.policies.fetch_add(1, Ordering::Relaxed);
                    let snapshot = self.snapshot();
                    self.lock().claim(|of| snapshot.of(of).is_some());
                    self.touch();
                    self.watch().await
                }
                Err(error) => Err(error),
            };
            if let Err(error) = started {
                complain("note", format_args!("cannot read the policies again: {}", told(error.as_ref())));
            }
        }
    }

    /// Returns the states of all records.
    fn records(&self) -> Vec<String> {
        let state = |record: &Arc<Value>| {
            let (metadata, status) = (&record["metadata"], &record["status"]);
            format!("{} {} {} {}", metadata["name"], metadata["generation"], status["state"], status["since"])
        };
        self.revisions().iter().map(state).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Objects> {
        lock(&self.objects)
    }

    fn touch(&self) {
        self.version.send_modify(|version| *version += 1);
    }

    fn put(&self, object: Value) -> Identity {
        let identity = identity_of(&object);
        let is_claimed = self.snapshot().of(&ResourceType::of_object(&object)).is_some();
        self.lock().put(identity.clone(), object, is_claimed);
        self.touch();
        identity
    }

    fn remove(&self, object: &Value) {
        self.lock().remove(&identity_of(object));
        self.touch();
    }

    fn listed(&self, WatchedType { of, place, role, .. }: &WatchedType, listed: &BTreeSet<Identity>) {
        self.lock().listed(of, place.as_deref(), listed, *role == Role::Claimed);
        let (right, name) = (self.right(of, place.as_deref()), watch_name(of, place.as_deref()));
        lock(&self.missing).remove(&right);
        lock(&self.broken).remove(&name);
        self.touch();
    }

    fn failed(&self, WatchedType { of, place, .. }: &WatchedType, is_refused: bool, why: String) {
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
        let served = self.lock().served(of).flatten();
        let resource = resource(served.as_ref().map(|served| served.resource.plural.as_str()), of);
        MissingRight { verb: "list", resource, namespace: place.map(str::to_owned) }
    }

    fn unconnected(&self, most: usize) -> (u64, Vec<(Identity, u64, Arc<Value>)>) {
        let policies = self.policies.load(Ordering::Relaxed);
        (policies, self.lock().unconnected(policies, most))
    }

    fn connect<'a>(&self, found: impl Iterator<Item = (&'a Identity, (u64, u64), Vec<Identity>)>) {
        let mut objects = self.lock();
        for (identity, from, uses) in found {
            objects.connect(identity, from, uses);
        }
        drop(objects);
        self.touch();
    }

    /// Runs work that computes for long, without a delay of other work.
    pub(super) async fn blocking<T: Send + 'static>(
        &self,
        work: impl AsyncFnOnce() -> anyhow::Result<T> + Send + 'static,
    ) -> anyhow::Result<T> {
        let _slot = self.slots.acquire().await?;
        let handle = tokio::runtime::Handle::current();
        tokio::task::spawn_blocking(move || handle.block_on(work())).await.context("the page could not be made")?
    }

    /// Returns a receiver that sees each change.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    /// Returns the policies that serve.
    pub(super) fn serving(&self) -> Arc<ServingPolicies> {
        Arc::clone(&lock(&self.serving))
    }

    fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&lock(&self.serving).snapshot)
    }

    /// Returns whether a policy answers for a kind.
    pub(super) fn is_kind_claimed(&self, group: &str, kind: &str) -> bool {
        self.snapshot().kinds().any(|(of, _)| of.group_kind() == (group, kind))
    }

    /// Returns the facts about the operator's cluster.
    pub(super) fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Returns what a survey needs.
    pub(super) fn sources(self: &Arc<Self>) -> Sources {
        let known: Arc<dyn KnownObjects> = Arc::<Self>::clone(self);
        Sources { client: self.client.clone(), cluster: self.cluster.clone(), snapshot: self.snapshot(), known }
    }

    /// Starts to gather objects, from the objects of this model first.
    pub(super) fn gathered(self: &Arc<Self>) -> Gathered {
        Gathered::knowing(self.client.clone(), Arc::<Self>::clone(self))
    }

    /// Returns an object.
    pub(super) fn object(&self, identity: &Identity) -> Option<KeptObject> {
        self.lock().get(identity).cloned()
    }

    /// Returns the name and the state of every object for which a policy answers and that `is_wanted`.
    pub(super) fn claimed(&self, is_wanted: impl Fn(&Identity, &KeptObject) -> bool) -> Vec<(Identity, KeptObject)> {
        let objects = self.lock();
        let wanted = objects.claimed().filter(|(identity, kept)| is_wanted(identity, kept));
        wanted.map(|(identity, kept)| (identity.clone(), kept.clone())).collect()
    }

    /// Returns the objects that an object uses, and the objects that use it.
    pub(super) fn connections(&self, identity: &Identity) -> (Vec<Identity>, Vec<Identity>) {
        let objects = self.lock();
        (objects.uses(identity).to_vec(), objects.users(identity).cloned().collect())
    }

    /// Returns the records of policies, sorted by name.
    pub(super) fn revisions(&self) -> Vec<Arc<Value>> {
        let group = RECORD.0.split('/').next().unwrap_or_default();
        self.lock().of_kind(group, RECORD.1).map(|kept| Arc::clone(&kept.object)).collect()
    }

    /// Returns what the user cannot see.
    pub(super) fn limits(&self) -> Limits {
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

    fn served(&self, of: &ResourceType) -> Option<Option<Served>> {
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
