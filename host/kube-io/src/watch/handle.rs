//! [`Watch`]: the interface of this module for the rest of the operator.

use std::{
    collections::BTreeSet,
    fmt,
    sync::{Arc, atomic::Ordering},
};

use kaos_objects::{Followed, Reference, ResourceType, Target};
use kube::Client;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{
    allowance::TooMany,
    apply_event,
    cached_object::CachedObject,
    charge,
    coverage::{self, Coverage},
    definitions, denied,
    discovery::Served,
    foreign_state,
    foreign_watch::ForeignWatch,
    look,
    lookup::{self, PassLookup, Seen},
    name_conflicts,
    options::WatchOptions,
    plan::Scope,
    plan_watches,
    report::{self, Reported},
    secret_metadata,
    shared::Shared,
    supervise,
    wake_log::Moment,
    write_guard::WriteGuard,
};
use crate::{
    metrics::IoMetrics,
    object_key::{ObjectKey, Wakes},
    queue::Urgency,
};

/// The watch on the cluster. All clones share the same state.
#[derive(Clone)]
pub struct Watch(Arc<Shared>);

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("options", &self.0.options).finish_non_exhaustive()
    }
}

impl Watch {
    /// Creates a watch. The watch does nothing before [`run`](Self::run). While [`run`](Self::run) runs, the watch
    /// calls `wake` for each object that needs a pass.
    pub fn new(
        client: Client,
        options: WatchOptions,
        metrics: Arc<dyn IoMetrics>,
        wake: impl Fn(ObjectKey, Urgency) + Send + Sync + 'static,
    ) -> Self {
        let shared = Arc::new(Shared::new(client, options, metrics, Box::new(wake)));
        let weak = Arc::downgrade(&shared);
        let reported = Reported::default();
        shared.metrics.before_reading(Box::new(move |metrics| {
            if let Some(shared) = weak.upgrade() {
                shared.with(|state| reported.report(state, metrics));
            }
        }));
        Self(shared)
    }

    /// Reads the state, for tests.
    #[cfg(test)]
    pub(super) fn with_state<T>(&self, ask: impl FnOnce(&super::state::State) -> T) -> T {
        self.0.with(|state| ask(state))
    }

    /// Watches the cluster until `stop` is cancelled.
    pub async fn run(&self, stop: CancellationToken) {
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = supervise::run(&self.0) => {}
        }
    }

    /// Sets the claims of the active policies. The watches of types that stay claimed continue. This function wakes no
    /// object: the caller wakes the objects whose policies changed, and the watch wakes each object of a newly covered
    /// type when it first sees the object.
    pub fn cover(&self, mut coverage: Coverage) {
        if self.0.options.secrets {
            coverage.follow_references();
        }
        self.0.with(|state| {
            let types = coverage.types();
            state.coverage = coverage;
            state.changes += 1;
            state.served.retain(|of, _| types.contains(of));
            plan_watches::plan(state);
        });
        self.0.rediscover.notify_one();
        self.0.plan.notify_one();
    }

    /// Returns the current coverage.
    pub fn coverage(&self) -> Coverage {
        self.0.with(|state| state.coverage.clone())
    }

    /// Returns an object without managed fields, or `None` if the watch does not contain the object. The operator must
    /// watch the object's type in full.
    pub fn object(&self, key: &ObjectKey) -> Option<Arc<Value>> {
        let seen = self.live(&key.of, &key.namespace, &key.name)?;
        seen.object().map(Arc::new)
    }

    /// Returns all objects of emitted types that the owner with this UID controls, sorted by type, namespace and name.
    pub fn children(&self, owner_uid: &str) -> Vec<Seen> {
        self.0.with(|state| lookup::children(state, owner_uid))
    }

    /// Returns an object from the store of its type, or `None` if the store does not contain the object. If the
    /// operator does not watch all objects of the type, the store contains only objects with the operator's label.
    pub fn live(&self, of: &ResourceType, namespace: &str, name: &str) -> Option<Seen> {
        self.0.with(|state| lookup::live(state, of, namespace, name))
    }

    /// Returns how the API server serves a type. Returns `None` if the server does not serve the type, or if the answer
    /// is not known yet.
    pub fn served(&self, of: &ResourceType) -> Option<Served> {
        self.0.with(|state| state.served.get(of).cloned().flatten())
    }

    /// Returns the keys of all objects of a type. The operator must watch the type in full.
    pub fn keys(&self, of: &ResourceType) -> Vec<ObjectKey> {
        self.0.with(|state| state.keys(of))
    }

    /// Returns the view of the cluster for one pass.
    pub fn lookup(&self) -> PassLookup {
        PassLookup::new(Arc::clone(&self.0))
    }

    /// Replaces the needs of an object. From now on, the watch wakes the object if a field in one of its needs changes.
    /// Returns whether the state of all needs is known. If so, the pass may look up pending needs again at once.
    /// Otherwise the watch wakes the object as soon as the state of all needs is known. If this function returns an
    /// error, the old needs stay in force, and the watch wakes the object when the new needs may fit within the limit.
    pub fn set_needs<N: Into<Followed>>(
        &self,
        key: &ObjectKey,
        needs: impl IntoIterator<Item = N>,
    ) -> Result<bool, TooMany> {
        let needs = needs.into_iter().map(Into::into).filter(|need: &Followed| coverage::can_exist(&need.target));
        let needs = needs.collect();
        let (changed, wakes, known) = self.0.with(|state| {
            let (changed, wakes) = charge::set_needs(state, key, needs)?;
            let known =
                state.needs.of_key(key).all(|target| !matches!(lookup::look(state, target), look::Look::Pending));
            Ok((changed, wakes, known))
        })?;
        if changed {
            self.0.plan.notify_one();
        }
        self.0.tell(|_| wakes);
        Ok(known)
    }

    /// Forgets the needs and the contested names of an object after its deletion.
    pub fn forget(&self, key: &ObjectKey) {
        // Ignore the error: an empty set of needs never exceeds the limit.
        drop(self.set_needs::<Followed>(key, []));
        self.0.with(|state| state.denied.remove(key));
        self.contest(key, &BTreeSet::new());
    }

    /// Returns a number that changes when the CustomResourceDefinition of a type changes. Returns 0 if the operator
    /// does not watch CustomResourceDefinitions.
    pub fn definition(&self, of: &ResourceType) -> u64 {
        self.0.with(|state| definitions::definition(state, of))
    }

    /// Returns whether the operator knows the CustomResourceDefinitions, or has no right to read them.
    pub fn has_answer_about_definitions(&self) -> bool {
        !self.sees_definitions() || self.0.definitions_answered.load(Ordering::Acquire)
    }

    /// Returns the present moment, for [`Self::is_unchanged_since`].
    pub fn moment(&self) -> Moment {
        self.0.with(|state| Moment { changes: state.changes, wakes: state.wake_log.count() })
    }

    /// Returns whether nothing has changed for an object since an earlier moment: the watch has not woken the object,
    /// and no type has changed. Also returns false if the log of wakes does not reach back to that moment.
    pub fn is_unchanged_since(&self, moment: Moment, key: &ObjectKey) -> bool {
        let Moment { changes, wakes } = moment;
        self.0.with(|state| state.changes == changes && !state.wake_log.may_contain(key, wakes))
    }

    /// Returns the needs that the watch follows for an object.
    pub fn needs_of(&self, key: &ObjectKey) -> Vec<Followed> {
        self.0.with(|state| state.needs.followed(key).collect())
    }

    /// Returns the digest that a planned Secret will have in the cluster.
    pub fn secret_digest(&self, secret: &Value) -> String {
        secret_metadata::secret_facts(secret, &self.0.options.digest_key).digest
    }

    /// Returns whether the operator has the right to read CustomResourceDefinitions.
    pub fn sees_definitions(&self) -> bool {
        self.0.options.scope == Scope::All
    }

    /// Stores the object that the API server returned for a write of the operator. The cache keeps this object until
    /// the watch reports a newer version.
    pub fn wrote(&self, object: &Value) {
        self.0.tell(|state| apply_event::wrote(state, object));
    }

    /// Removes an object from the cache after the operator deleted the object. If the object still exists because of
    /// its finalizers, call [`wrote`] instead.
    ///
    /// [`wrote`]: Self::wrote
    pub fn deleted(&self, of: &ResourceType, namespace: &str, name: &str, uid: &str) {
        self.0.tell(|state| apply_event::deleted(state, of, namespace, name, uid));
    }

    /// Returns the reasons why passes over a claimed kind wait. The list is empty after every type in the claims on
    /// this kind is listed, refused or not served. When the list becomes empty, the watch wakes all objects of the
    /// kind.
    pub fn waiting_for(&self, primary: &ResourceType) -> Vec<String> {
        self.0.with(|state| state.waiting_for(primary))
    }

    /// Returns the types that the watch has not listed yet, among a claimed kind and the types of its children.
    pub fn unlisted(&self, primary: &ResourceType) -> Vec<ResourceType> {
        self.0.with(|state| state.unlisted(primary))
    }

    /// Checks that the state of every covered type is known, except in [barred] namespaces. The error lists the unknown
    /// types and the reasons.
    ///
    /// [barred]: Self::barred
    pub fn synced(&self) -> Result<(), Vec<String>> {
        let missing: Vec<String> = self.0.with(|state| {
            let (types, barred) = (state.coverage.types(), report::barred(state));
            let refused =
                |of: &ResourceType| report::refused(state, of, &barred).filter(|_| !state.coverage.is_kept(of));
            types.iter().filter_map(|of| state.unknown(of).or_else(|| refused(of))).collect()
        });
        if missing.is_empty() { Ok(()) } else { Err(missing) }
    }

    /// Checks that the operator's cached objects follow the cluster. The error lists each type whose state is not
    /// [known], and each type whose watch lost its rights. The error also lists each [foreign watch](Self::beside) that
    /// lacks its first list or a right. Returns no error if the operator cannot reach the API server.
    ///
    /// [known]: Self::synced
    pub fn follows_all(&self) -> Result<(), Vec<String>> {
        let mut missing = self.synced().err().unwrap_or_default();
        self.0.with(|state| {
            missing.extend(report::lost(state, &report::barred(state)));
            missing.extend(state.foreign.values().filter_map(foreign_state::ForeignState::missing));
        });
        if missing.is_empty() { Ok(()) } else { Err(missing) }
    }

    /// Returns the barred namespaces: the scope lists these namespaces, but the operator can read nothing in them, and
    /// can read in other namespaces. Usually such a namespace was deleted together with its Roles. The operator
    /// regularly tries these namespaces again, but readiness and passes do not wait for them.
    pub fn barred(&self) -> BTreeSet<String> {
        self.0.with(|state| report::barred(state))
    }

    /// Returns the reason why the operator cannot watch a type now: a missing right, or a server that does not answer.
    /// `None` if the operator watches the type.
    pub fn trouble(&self, of: &ResourceType) -> Option<String> {
        self.0.with(|state| state.trouble(of))
    }

    /// Returns why the operator does not follow objects of a type in this namespace now; `None` if the operator follows
    /// these objects. While the operator does not follow objects, cached objects may be old, and a policy may get the
    /// answer `forbidden`.
    pub fn trouble_in(&self, of: &ResourceType, namespace: &str) -> Option<String> {
        self.0.with(|state| state.trouble_in(of, namespace))
    }

    /// Returns why the operator is not allowed to watch a type; `None` if the operator is allowed to watch the type.
    pub fn forbidden(&self, of: &ResourceType) -> Option<String> {
        self.0.with(|state| {
            let troubles = state.slots_of(of).filter_map(|(_, slot)| slot.cache.trouble.as_ref());
            troubles.filter(|trouble| trouble.forbidden).map(|trouble| trouble.text.clone()).next()
        })
    }

    /// Returns a number that changes each time that rights return.
    pub fn rights(&self) -> u64 {
        self.0.with(|state| *state.rights.borrow())
    }

    /// Records that a pass lacked a right. `began` is the value of [`rights`](Self::rights) at the start of the pass.
    /// The watch wakes the object when rights return, or at once if rights returned during the pass. Of all objects
    /// that wait for rights, one retries at regular intervals. Returns whether this object is the one that retries.
    pub fn was_denied(&self, key: &ObjectKey, began: u64) -> bool {
        let mut goes_on = false;
        self.0.tell(|state| {
            if *state.rights.borrow() != began {
                return vec![(key.clone(), Urgency::Bulk)];
            }
            state.denied.insert(key.clone());
            goes_on = state.denied.first() == Some(key);
            Wakes::new()
        });
        goes_on
    }

    /// Returns the number of objects that wait for rights.
    pub fn denied(&self) -> usize {
        self.0.with(|state| state.denied.len())
    }

    /// Records that a pass ran to its end. If the object's previous pass lacked a right, the watch treats this success
    /// as the return of rights.
    pub fn was_let_in(&self, key: &ObjectKey) {
        self.0.tell(|state| if state.denied.remove(key) { denied::rights_are_back(state) } else { Wakes::new() });
    }

    /// Replaces the contested names of an object. A contested name is a name for a planned child that an object of
    /// another owner already has. The watch wakes the object when one of the names may be free.
    pub fn contest(&self, key: &ObjectKey, names: &BTreeSet<Reference>) {
        let names = names.iter().cloned().map(|name| (&Target::Named(name)).into()).collect();
        if self.0.with(|state| !state.name_conflicts.set(key, names).is_empty()) {
            self.0.plan.notify_one();
        }
    }

    /// Returns the metadata of the object that has a contested name. Returns `None` if the metadata is unknown, or if
    /// the name is free.
    pub fn rival(&self, name: &Reference) -> Option<Value> {
        self.0.with(|state| {
            let slot = name_conflicts::rivals(state, name)?;
            slot.cache.get(name.namespace.as_deref().unwrap_or_default(), &name.name).map(CachedObject::value)
        })
    }

    /// Returns whether the watch follows a contested name, so that no pass has to check the name.
    pub fn follows(&self, name: &Reference) -> bool {
        self.0.with(|state| name_conflicts::rivals(state, name).is_some())
    }

    /// Registers a watch on a type that another part of the operator runs. `what` is the purpose of the watch.
    pub fn beside(&self, of: ResourceType, what: &'static str) -> ForeignWatch {
        ForeignWatch::new(Arc::clone(&self.0), of, what)
    }

    /// Announces a write of a child.
    ///
    /// Until the guard is dropped, the watch does not wake the owner in the child's manifest for this write.
    pub fn writing(&self, child: &Value) -> WriteGuard<'_> {
        WriteGuard::new(&self.0, child)
    }
}
