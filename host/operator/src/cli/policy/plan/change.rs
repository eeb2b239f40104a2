//! The change that a plan is about.

use super::{
    super::{
        answering::{Shipped, Standing},
        compatibility::Compatibility,
    },
    sides::Sides,
};

/// A change to simulate.
pub(super) enum Change {
    /// A user ships a package.
    Package(Box<Shipped>),
    /// Another preset applies.
    Preset(Compatibility),
}

impl Change {
    /// Namespace and name of the ConfigMap that the change replaces.
    pub(super) fn source(&self) -> Option<&(String, String)> {
        match self {
            Self::Package(shipped) => Some(&shipped.source),
            Self::Preset(_) => None,
        }
    }

    /// Returns the policies and settings before and after the change.
    pub(super) fn sides(self, standing: &Standing) -> anyhow::Result<Sides> {
        match self {
            Self::Package(shipped) => Sides::of(standing, *shipped),
            Self::Preset(compatibility) => Sides::with_preset(standing, &compatibility),
        }
    }
}
