//! Stores which policies answer now.
//!
//! A snapshot contains the policies for each kind in each namespace. A pass takes one snapshot and uses it until the
//! pass ends, even if a swap happens before the end. A swap replaces one pointer. After a swap, [`crate::operator`]
//! queues the affected objects.
//!
//! | module | content |
//! |---|---|
//! | `clash` | finds conflicts between packages |
//! | `descent` | finds the fallback for an object on which a policy fails |
//! | `grantable` | the owner's limits for grants to installed policies |
//! | `installed` | installs the policies that users add while the operator runs |
//! | `kind`, `answers`, `snapshot` | the policies that answer, by kind and place |
//! | `ledger` | the objects that each revision serves and fails on |
//! | `precedence` | computes which policies answer, from all policies and their scopes |
//! | `scope` | the scopes of policies and of settings |
//! | `renderers` | binds policies to settings and to the cluster |
//! | `shared` | settings for the whole cluster |
//! | `staging` | the rollouts that go on, and the policies for objects that they have not moved yet |
//! | `tenancy` | decides which scope and grants a package can have, by its namespace |
//! | `trial` | tries settings on the samples of policies |

mod answers;
mod clash;
mod descent;
mod grantable;
pub(crate) mod installed;
mod kind;
mod ledger;
mod made;
mod precedence;
mod renderers;
mod scope;
mod shared;
mod snapshot;
mod staging;
mod tenancy;
#[cfg(test)]
mod tests;
mod trial;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Arc, Mutex},
};

use arc_swap::ArcSwapOption;
use kaos_policy::{
    contract::{Cluster, ResourceType},
    policy::Stack,
    render::Renderer,
    settings::{Layer, SettingsErrors},
};
use tokio::sync::watch;

pub use answers::Answers;
pub(crate) use answers::Replaced;
pub use descent::Descent;
pub use grantable::Grantable;
pub use installed::{CodeShare, DefaultPolicy, Defaults, DefaultsRollout, Gatekeeper, Installing};
pub(crate) use kind::REFUSES;
pub use kind::{Fallback, Kind, Member, Tuning};
pub use ledger::{Book, Ledger, Without};
pub(crate) use precedence::PLACE_TAKEN;
pub use precedence::{Age, Arranged, Conflict, Given, Missed, Offer, arrange};
pub(crate) use renderers::Renderers;
pub use scope::Reach;
pub use shared::{environment, operator_config, told_apart};
pub use snapshot::{Answer, Awaited, Loading, PIN, Snapshot};
pub use staging::{MovedObjects, Predecessors, RolloutStage, Staging};
pub(crate) use tenancy::{Overreach, reach};
use trial::lasting;
pub(crate) use trial::try_settings;

use crate::locking::lock;

/// The policies that answer now. A swap replaces all these policies at once.
pub struct Catalogue {
    current: ArcSwapOption<Snapshot>,
    revision: watch::Sender<u64>,
    ledger: Ledger,
    waits_for: Mutex<Option<String>>,
    remembered: Mutex<BTreeSet<ResourceType>>,
}

impl fmt::Debug for Catalogue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Catalogue").field("revision", &*self.revision.borrow()).finish_non_exhaustive()
    }
}

impl Default for Catalogue {
    fn default() -> Self {
        Self {
            current: ArcSwapOption::empty(),
            revision: watch::Sender::new(0),
            ledger: Ledger::default(),
            waits_for: Mutex::default(),
            remembered: Mutex::default(),
        }
    }
}

impl Catalogue {
    /// Creates a catalogue with these policies for the whole cluster.
    pub fn new(stacks: &BTreeMap<ResourceType, Stack>, layers: &[Layer]) -> Result<Self, SettingsErrors> {
        let catalogue = Self::default();
        catalogue.replace(stacks, layers)?;
        Ok(catalogue)
    }

    /// Replaces all policies and settings, for the whole cluster. If the settings do not fit the policies, the old
    /// policies and settings stay.
    pub fn replace(&self, stacks: &BTreeMap<ResourceType, Stack>, layers: &[Layer]) -> Result<(), SettingsErrors> {
        for stack in stacks.values() {
            Renderer::new(stack, layers, Cluster::default())?;
        }
        let offers: Vec<Offer> = stacks.iter().flat_map(|(of, stack)| Offer::of_process(of, stack)).collect();
        self.install(arrange(&offers, &[], &[], layers));
        Ok(())
    }

    /// Swaps in these policies. Reuses each `Kind` value that did not change.
    pub fn install(&self, arranged: Arranged) {
        self.install_while(Loading::new(), arranged);
    }

    /// Swaps in these policies. `loading` contains the policies that this process is still loading.
    pub(crate) fn install_while(&self, loading: Loading, arranged: Arranged) {
        // `send_modify` locks the channel while this function runs, so two swaps cannot overlap.
        self.revision.send_modify(|revision| {
            *revision += 1;
            let before = self.current.load_full();
            let next = Snapshot::after(before.as_deref(), *revision, loading, arranged);
            self.current.store(Some(Arc::new(next)));
        });
    }

    /// Returns the snapshot that a swap to these policies would install. Makes no swap. Reuses each `Kind` value that
    /// did not change.
    pub(crate) fn proposed(&self, arranged: Arranged) -> Arc<Snapshot> {
        let before = self.current.load_full();
        let loading = before.as_ref().map(|before| before.loading.clone()).unwrap_or_default();
        Arc::new(Snapshot::after(before.as_deref(), 0, loading, arranged))
    }

    /// Returns the current policies. Returns `None` before the first swap.
    pub fn load(&self) -> Option<Arc<Snapshot>> {
        self.current.load_full()
    }

    /// Remembers kinds for which policies answered before this process started. If no policy answers for such a kind
    /// now, the status of its objects reports the missing policy.
    pub(crate) fn remember(&self, kinds: impl IntoIterator<Item = ResourceType>) {
        lock(&self.remembered).extend(kinds);
    }

    /// Returns the remembered kinds.
    pub(crate) fn remembered(&self) -> BTreeSet<ResourceType> {
        lock(&self.remembered).clone()
    }

    /// Sets the reason why the catalogue has no policies yet. The readiness check reports this reason.
    pub(crate) fn waits_for(&self, what: String) {
        *lock(&self.waits_for) = Some(what);
    }

    /// Returns why the catalogue has no policies; `None` if the catalogue has policies.
    pub(crate) fn missing(&self) -> Option<String> {
        if self.current.load().is_some() {
            return None;
        }
        let why = lock(&self.waits_for).clone();
        Some(why.unwrap_or_else(|| "the policies are not loaded yet".to_owned()))
    }

    /// Returns the ledger: which revision serves which object, and on which objects revisions failed.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Returns a channel with the number of the latest swap. A caller can wait on the channel for the next swap.
    pub fn revisions(&self) -> watch::Receiver<u64> {
        self.revision.subscribe()
    }
}
