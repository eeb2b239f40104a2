//! Which policies answer now.
//!
//! One snapshot holds what answers for each kind in each place. A pass takes a snapshot once and works on it, whatever is
//! swapped meanwhile; a swap is one pointer. Looking again at the objects that a swap concerns is left to
//! [`crate::operator`].
//!
//! | module | what it has |
//! |---|---|
//! | `clash` | what may not serve beside what |
//! | `descent` | what answers for an object that something fails on |
//! | `grantable` | what installed policies are given at most |
//! | `installed` | what somebody installs while the operator runs |
//! | `kind`, `snapshot` | what answers, for what |
//! | `ledger` | on whom a revision failed |
//! | `precedence` | from policies and where they hold to what answers |
//! | `renderers` | policies bound to settings and to the cluster |
//! | `shared` | settings that hold everywhere |
//! | `tenancy` | what a package may ask for where it lies |
//! | `trial` | settings tried on the samples of policies |

mod clash;
mod descent;
mod grantable;
pub(crate) mod installed;
mod kind;
mod ledger;
mod made;
mod precedence;
mod renderers;
mod shared;
mod snapshot;
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

pub use descent::Descent;
pub use grantable::{Grantable, GroupKind, NotAKind};
pub use installed::{Gatekeeper, Installing};
pub use kind::{Fallback, Kind, Member, Tuning};
pub use ledger::{Book, Ledger, Without};
pub use precedence::{Age, Arranged, Conflict, Given, Missed, Offer, Reach, arrange};
pub(crate) use renderers::Renderers;
pub use shared::{FITTED_CONFIG, OPERATOR_CONFIG, environment, operator_config, told_apart};
pub use snapshot::{Answer, Answers, Loading, PIN, Snapshot};
pub(crate) use tenancy::{Overreach, reach};
use trial::lasting;
pub(crate) use trial::try_settings;

use crate::locking::lock;

/// The policies that answer, as one value that can be swapped.
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
    /// A catalogue that holds these policies from the start.
    pub fn new(stacks: &BTreeMap<ResourceType, Stack>, layers: &[Layer]) -> Result<Self, SettingsErrors> {
        let catalogue = Self::default();
        catalogue.replace(stacks, layers)?;
        Ok(catalogue)
    }

    /// Lets other policies or settings answer from now on, for the whole cluster. If the settings do not fit, what
    /// answered goes on.
    pub fn replace(&self, stacks: &BTreeMap<ResourceType, Stack>, layers: &[Layer]) -> Result<(), SettingsErrors> {
        for stack in stacks.values() {
            Renderer::new(stack, layers, Cluster::default())?;
        }
        let offers: Vec<Offer> = stacks.iter().flat_map(|(of, stack)| Offer::of_process(of, stack)).collect();
        self.install(arrange(&offers, &[], &[], layers).answers);
        Ok(())
    }

    /// Lets these answer from now on. What is as it was goes on undisturbed.
    pub fn install(&self, answers: BTreeMap<ResourceType, Answers>) {
        self.install_while(Loading::new(), answers);
    }

    /// The same, while the rest is being loaded still.
    pub(crate) fn install_while(&self, loading: Loading, mut answers: BTreeMap<ResourceType, Answers>) {
        // The lock that swaps and their numbers are made under.
        self.revision.send_modify(|revision| {
            *revision += 1;
            let before = self.current.load_full();
            for (of, answers) in &mut answers {
                answers.since = *revision;
                if let Some(before) = before.as_ref().and_then(|before| before.kinds.get(of)) {
                    answers.keep(before);
                }
            }
            self.current.store(Some(Arc::new(Snapshot { revision: *revision, kinds: answers, loading })));
        });
    }

    /// What answers now; none before the first policies are there.
    pub fn load(&self) -> Option<Arc<Snapshot>> {
        self.current.load_full()
    }

    /// Remembers kinds that policies answered for before this process began: their objects are told when none does now.
    pub(crate) fn remember(&self, kinds: impl IntoIterator<Item = ResourceType>) {
        lock(&self.remembered).extend(kinds);
    }

    /// Kinds that are remembered.
    pub(crate) fn remembered(&self) -> BTreeSet<ResourceType> {
        lock(&self.remembered).clone()
    }

    /// Says why there are no policies yet, to whoever asks whether the operator is ready.
    pub(crate) fn waits_for(&self, what: String) {
        *lock(&self.waits_for) = Some(what);
    }

    /// Why there are no policies; none when there are.
    pub(crate) fn missing(&self) -> Option<String> {
        if self.current.load().is_some() {
            return None;
        }
        let why = lock(&self.waits_for).clone();
        Some(why.unwrap_or_else(|| "the policies are not there yet".to_owned()))
    }

    /// Who is served by what, and how well.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The number of the newest swap, to wait for the next.
    pub fn revisions(&self) -> watch::Receiver<u64> {
        self.revision.subscribe()
    }
}
