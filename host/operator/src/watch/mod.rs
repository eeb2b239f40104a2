//! Watches the cluster without knowing kinds: what the policies in force claim, and nothing else.
//!
//! | module | what it has |
//! |---|---|
//! | `coverage`, `plan` | which types are watched and how; which watches that comes to |
//! | `discovery`, `known`, `definitions` | which types are served; noticing that this changed |
//! | `reflector`, `page`, `event`, `broken` | following one collection, whatever breaks |
//! | `item`, `shelf`, `facts`, `by_label`, `selected` | what is kept of objects |
//! | `needs`, `allowance`, `charge` | who needs what; how much of it the objects of a namespace may |
//! | `contested`, `owners` | who wants whose name; which children an owner has |
//! | `state`, `slot`, `intake` | all of it together; what comes in and whom it wakes |
//! | `in_flight`, `writing` | who is not woken, having written it |
//! | `denied` | who tries again when rights come back |
//! | `look`, `lookup`, `report` | what passes, metrics and readiness read |
//! | `other`, `beside` | telling of watches that others keep |
//! | `supervise`, `errands`, `shared` | the tasks |
//!
//! A store is shared by all who read a type. Primaries and read types are watched whole, emitted types by the label
//! that every child carries. ConfigMaps and Secrets are never watched whole to be read: needed ones are watched by
//! name or by labels as long as somebody needs them, and of Secrets only metadata. Whoever is concerned by an event
//! is woken through the callback that [`Watch::new`] takes; what a pass does about it, and when, is left to the queue
//! and to `reconcile`.

mod allowance;
mod beside;
mod broken;
mod by_label;
mod charge;
mod contested;
mod coverage;
mod definitions;
mod denied;
mod discovery;
mod errands;
mod event;
mod facts;
mod in_flight;
mod intake;
mod item;
mod key;
mod known;
mod look;
mod lookup;
mod needs;
mod options;
mod other;
mod owners;
mod page;
mod plan;
mod reflector;
mod report;
mod selected;
mod shared;
mod shelf;
mod slot;
mod state;
mod supervise;
#[cfg(test)]
mod tests;
mod writing;

use std::{collections::BTreeSet, fmt, sync::Arc};

use kaos_policy::contract::{Need, ResourceType};
use kube::Client;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

pub use allowance::{Allowance, TooMany};
pub(crate) use beside::Beside;
pub(crate) use coverage::is_guarded;
pub use coverage::{Claimed, Coverage};
pub use discovery::Served;
pub(crate) use discovery::discover;
pub use key::ObjectKey;
pub use lookup::{PassLookup, Seen};
pub use options::{Wake, WatchOptions};
pub use plan::Scope;
pub(crate) use writing::Writing;

use crate::{metrics::Metrics, queue::Urgency};
use report::Reported;
use shared::Shared;

/// The watch. Clones are the same watch.
#[derive(Clone)]
pub struct Watch(Arc<Shared>);

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("options", &self.0.options).finish_non_exhaustive()
    }
}

impl Watch {
    /// A watch that does nothing before [`run`](Self::run), and calls `wake` for what is to be looked at again.
    pub fn new(
        client: Client,
        options: WatchOptions,
        metrics: Arc<Metrics>,
        wake: impl Fn(ObjectKey, Urgency) + Send + Sync + 'static,
    ) -> Self {
        let shared = Arc::new(Shared::new(client, options, metrics, Box::new(wake)));
        let weak = Arc::downgrade(&shared);
        let reported = Reported::default();
        shared.metrics.before_encoding(move |metrics| {
            if let Some(shared) = weak.upgrade() {
                shared.with(|state| reported.report(state, metrics));
            }
        });
        Self(shared)
    }

    /// Watches until told to stop.
    pub async fn run(&self, stop: CancellationToken) {
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = supervise::run(&self.0) => {}
        }
    }

    /// Says what the policies in force claim. What stays claimed stays watched. Nobody is woken for it: whoever changes
    /// policies knows which objects that concerns; objects of types that are new are told of as they come in.
    pub fn cover(&self, mut coverage: Coverage) {
        if self.0.options.secrets {
            coverage.follow_references();
        }
        self.0.with(|state| {
            let types = coverage.types();
            state.coverage = coverage;
            state.served.retain(|of, _| types.contains(of));
            state.plan();
        });
        self.0.rediscover.notify_one();
        self.0.plan.notify_one();
    }

    /// What is covered now.
    pub fn coverage(&self) -> Coverage {
        self.0.with(|state| state.coverage.clone())
    }

    /// An object of a type that is watched whole, without managed fields.
    pub fn object(&self, key: &ObjectKey) -> Option<Arc<Value>> {
        let seen = self.live(&key.of, &key.namespace, &key.name)?;
        seen.object().map(Arc::new)
    }

    /// Everything of emitted types whose controller has this UID, by type, namespace and name.
    pub fn children(&self, owner_uid: &str) -> Vec<Seen> {
        self.0.with(|state| state.children(owner_uid))
    }

    /// An object in the store of its type. Of emitted types only those are in it that carry our label.
    pub fn live(&self, of: &ResourceType, namespace: &str, name: &str) -> Option<Seen> {
        self.0.with(|state| state.live(of, namespace, name))
    }

    /// How a type is served; none if it is not, or not known yet.
    pub fn served(&self, of: &ResourceType) -> Option<Served> {
        self.0.with(|state| state.served.get(of).cloned().flatten())
    }

    /// All objects of a type that is watched whole.
    pub fn keys(&self, of: &ResourceType) -> Vec<ObjectKey> {
        self.0.with(|state| state.keys(of))
    }

    /// The cluster for one pass.
    pub fn lookup(&self) -> PassLookup {
        PassLookup::new(Arc::clone(&self.0))
    }

    /// Says what an object needs, in place of what was said before. From now on it is woken when any of that changes.
    /// Returns whether all of it is known: if it is not, the object is woken as soon as it is; if it is, what was pending
    /// before may be looked up again at once. Where it is too much, what was said before counts on, and the object is woken
    /// when there may be room.
    pub fn set_needs(&self, key: &ObjectKey, needs: &[Need]) -> Result<bool, TooMany> {
        let targets =
            needs.iter().map(|need| &need.target).filter(|target| coverage::can_exist(target)).cloned().collect();
        let (changed, wakes, known) = self.0.with(|state| {
            let (changed, wakes) = state.set_needs(key, targets)?;
            let known = state.needs.of_key(key).all(|target| !matches!(state.look(target), look::Look::Pending));
            Ok((changed, wakes, known))
        })?;
        if changed {
            self.0.plan.notify_one();
        }
        self.0.tell(|_| wakes);
        Ok(known)
    }

    /// Forgets what an object that is gone needed and wanted.
    pub fn forget(&self, key: &ObjectKey) {
        // Nothing is never too much.
        drop(self.set_needs(key, &[]));
        self.0.with(|state| state.denied.remove(key));
        self.contest(key, &BTreeSet::new());
    }

    /// A number that changes with the definition of a type; 0 where definitions are not watched.
    pub fn definition(&self, of: &ResourceType) -> u64 {
        self.0.with(|state| state.definition(of))
    }

    /// What a Secret that is not stored yet will be known by.
    pub fn secret_digest(&self, secret: &Value) -> String {
        facts::secret_facts(secret, &self.0.options.digest_key).digest
    }

    /// Whether definitions are there to be read.
    pub fn sees_definitions(&self) -> bool {
        self.0.options.scope == Scope::All
    }

    /// A write of ours was answered with this object. It counts until the watch has passed its version.
    pub fn wrote(&self, object: &Value) {
        self.0.tell(|state| state.wrote(object));
    }

    /// A deletion of ours was answered, and the object is gone: not one that waits for finalizers, which is [written].
    ///
    /// [written]: Self::wrote
    pub fn deleted(&self, of: &ResourceType, namespace: &str, name: &str, uid: &str) {
        self.0.tell(|state| state.deleted(of, namespace, name, uid));
    }

    /// What passes over a type wait for; nothing once every type that plays a part in its claims was listed, is refused or
    /// is not served. All objects of the type are woken when that comes about.
    pub fn waiting_for(&self, primary: &ResourceType) -> Vec<String> {
        self.0.with(|state| state.waiting_for(primary))
    }

    /// The types of which nobody knows yet which objects there are: of a primary, and of its children.
    pub fn unlisted(&self, primary: &ResourceType) -> Vec<ResourceType> {
        self.0.with(|state| state.unlisted(primary))
    }

    /// Whether everything that is covered is known, but for what is in [barred] namespaces; otherwise what is not, and why.
    ///
    /// [barred]: Self::barred
    pub fn synced(&self) -> Result<(), Vec<String>> {
        let missing: Vec<String> = self.0.with(|state| {
            let (types, barred) = (state.coverage.types(), state.barred());
            let refused = |of: &ResourceType| state.refused(of, &barred).filter(|_| !state.coverage.is_kept(of));
            types.iter().filter_map(|of| state.unknown(of).or_else(|| refused(of))).collect()
        });
        if missing.is_empty() { Ok(()) } else { Err(missing) }
    }

    /// Whether what is known follows the cluster; otherwise what does not, and why: what was never [seen], what was and may be
    /// no longer, and what of that is missing to those who keep watches of their own. A server that is out of reach does not
    /// count.
    ///
    /// [seen]: Self::synced
    pub fn follows_all(&self) -> Result<(), Vec<String>> {
        let mut missing = self.synced().err().unwrap_or_default();
        self.0.with(|state| {
            missing.extend(state.lost(&state.barred()));
            missing.extend(state.others.values().filter_map(other::Other::missing));
        });
        if missing.is_empty() { Ok(()) } else { Err(missing) }
    }

    /// Listed namespaces in which nothing may be read, as where one is gone and its Roles with it, while something is in
    /// others. They are asked for again and again, and nobody waits for them.
    pub fn barred(&self) -> BTreeSet<String> {
        self.0.with(|state| state.barred())
    }

    /// Why a type cannot be watched now, if that is so: a right that is missing, a server that does not answer.
    pub fn trouble(&self, of: &ResourceType) -> Option<String> {
        self.0.with(|state| state.trouble(of))
    }

    /// Why the operator may not watch a type, if that is so.
    pub fn forbidden(&self, of: &ResourceType) -> Option<String> {
        self.0.with(|state| {
            let troubles = state.slots_of(of).filter_map(|(_, slot)| slot.shelf.trouble.as_ref());
            troubles.filter(|trouble| trouble.forbidden).map(|trouble| trouble.text.clone()).next()
        })
    }
}
