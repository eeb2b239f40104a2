//! Which policies answer now.
//!
//! One snapshot holds the stack of each kind and the layers of settings. A pass takes a snapshot once and works on it,
//! whatever is swapped meanwhile; a swap is one pointer. Where policies come from is left to whoever calls
//! [`Catalogue::replace`]; looking again at the objects that a swap concerns, to [`crate::operator`].

mod binary;
mod renderers;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use arc_swap::ArcSwapOption;
use kaos_policy::{
    contract::{Claim, Cluster, ResourceType},
    policy::{Policy, PolicyId, Stack},
    render::Renderer,
    settings::{Layer, SettingsErrors},
};
use tokio::sync::watch;

pub use binary::{CatalogueError, environment};
pub(crate) use renderers::Renderers;

/// The policies that answer, as one value that can be swapped.
pub struct Catalogue {
    current: ArcSwapOption<Snapshot>,
    revision: watch::Sender<u64>,
}

/// What answers, all of one moment.
#[derive(Debug)]
pub struct Snapshot {
    /// Counts the swaps.
    pub revision: u64,
    kinds: BTreeMap<ResourceType, Arc<Kind>>,
}

/// What answers for one kind.
#[derive(Debug)]
pub struct Kind {
    /// The policies.
    pub stack: Stack,
    /// The settings that concern them, in no order.
    pub layers: Arc<Vec<Layer>>,
    /// Types that a policy for this kind ever emitted.
    pub emitted: BTreeSet<ResourceType>,
    /// The swap that brought it.
    pub since: u64,
}

impl fmt::Debug for Catalogue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Catalogue").field("revision", &*self.revision.borrow()).finish_non_exhaustive()
    }
}

impl Default for Catalogue {
    fn default() -> Self {
        Self { current: ArcSwapOption::empty(), revision: watch::Sender::new(0) }
    }
}

impl Catalogue {
    /// A catalogue that holds these policies from the start.
    pub fn new(stacks: BTreeMap<ResourceType, Stack>, layers: Vec<Layer>) -> Result<Self, SettingsErrors> {
        let catalogue = Self::default();
        catalogue.replace(stacks, layers)?;
        Ok(catalogue)
    }

    /// Lets other policies or settings answer from now on. If the settings do not fit, what answered goes on.
    pub fn replace(&self, stacks: BTreeMap<ResourceType, Stack>, layers: Vec<Layer>) -> Result<(), SettingsErrors> {
        for stack in stacks.values() {
            Renderer::new(stack, &layers, Cluster::default())?;
        }
        let layers = Arc::new(layers);
        // The lock that swaps and their numbers are made under.
        self.revision.send_modify(|revision| {
            *revision += 1;
            let before = self.current.load_full();
            let kind = |(of, stack): (ResourceType, Stack)| {
                let before = before.as_ref().and_then(|before| before.kinds.get(&of));
                let kind = Kind::after(before, &of, stack, &layers, *revision);
                (of, kind)
            };
            let kinds = stacks.into_iter().map(kind).collect();
            self.current.store(Some(Arc::new(Snapshot { revision: *revision, kinds })));
        });
        Ok(())
    }

    /// What answers now; none before the first policies are there.
    pub fn load(&self) -> Option<Arc<Snapshot>> {
        self.current.load_full()
    }

    /// The number of the newest swap, to wait for the next.
    pub fn revisions(&self) -> watch::Receiver<u64> {
        self.revision.subscribe()
    }
}

impl Snapshot {
    /// What answers for a kind.
    pub fn kind(&self, of: &ResourceType) -> Option<&Arc<Kind>> {
        self.kinds.get(of)
    }

    /// Every kind and what answers for it.
    pub fn kinds(&self) -> impl Iterator<Item = (&ResourceType, &Arc<Kind>)> {
        self.kinds.iter()
    }

    /// Each layer for each kind.
    pub fn active(&self) -> Vec<(ResourceType, PolicyId)> {
        let ids = |(of, kind): (&ResourceType, &Arc<Kind>)| {
            kind.policies().map(|policy| (of.clone(), policy.id().clone())).collect::<Vec<_>>()
        };
        self.kinds().flat_map(ids).collect()
    }
}

impl Kind {
    /// What comes after `before`: the same value if nothing about it changes.
    fn after(
        before: Option<&Arc<Self>>,
        of: &ResourceType,
        stack: Stack,
        layers: &Arc<Vec<Layer>>,
        revision: u64,
    ) -> Arc<Self> {
        let policies = |stack: &Stack| -> Vec<Arc<Policy>> {
            std::iter::once(stack.base()).chain(stack.overlays()).map(Arc::clone).collect()
        };
        if let Some(before) = before {
            let (old, new) = (policies(&before.stack), policies(&stack));
            let same = old.len() == new.len()
                && old.iter().zip(&new).all(|(old, new)| {
                    old.id() == new.id() && old.grants() == new.grants() && old.limits() == new.limits()
                });
            if same && before.layers == *layers {
                return Arc::clone(before);
            }
        }
        let mut emitted = before.map(|before| before.emitted.clone()).unwrap_or_default();
        let claims = policies(&stack);
        emitted.extend(claims.iter().filter_map(|policy| policy.claim(of)).flat_map(|claim| claim.emits.clone()));
        Arc::new(Self { stack, layers: Arc::clone(layers), emitted, since: revision })
    }

    /// The policies, the lowest first.
    pub fn policies(&self) -> impl Iterator<Item = &Arc<Policy>> {
        std::iter::once(self.stack.base()).chain(self.stack.overlays())
    }

    /// What they claim of a kind.
    pub fn claims<'a>(&'a self, of: &'a ResourceType) -> impl Iterator<Item = &'a Claim> {
        self.policies().filter_map(move |policy| policy.claim(of))
    }
}
