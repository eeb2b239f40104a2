//! The change whose effect `policy plan` shows: a package or a preset.

use std::sync::Arc;

use kaos_policy::policy::Policy;

use super::{
    super::{
        answering::{PolicySet, Shipped},
        compatibility::Compatibility,
    },
    sides::Sides,
};
use crate::policies::Loader;

/// A change whose effect `policy plan` shows.
pub(super) enum ProposedChange {
    /// The user installs a package.
    Package(Box<Shipped>),
    /// The operator starts with another preset.
    Preset(Compatibility),
}

impl ProposedChange {
    /// Returns the namespace and the name of the ConfigMap that the change replaces, or `None` for a preset.
    pub(super) fn source(&self) -> Option<&(String, String)> {
        match self {
            Self::Package(shipped) => Some(&shipped.source),
            Self::Preset(_) => None,
        }
    }

    /// Returns the policy of the package; `None` for a package without a component, and for a preset.
    pub(super) fn policy(&self) -> Option<&Arc<Policy>> {
        match self {
            Self::Package(shipped) => shipped.policy.as_ref(),
            Self::Preset(_) => None,
        }
    }

    /// Returns the policy tables before and after the change. `loader` contains the facts about the API server.
    pub(super) fn sides(self, standing: &PolicySet, loader: &Loader) -> anyhow::Result<Sides> {
        match self {
            Self::Package(shipped) => Sides::of(standing, *shipped, loader),
            Self::Preset(compatibility) => Sides::with_preset(standing, &compatibility),
        }
    }
}
