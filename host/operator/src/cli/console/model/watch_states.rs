//! The states of the console's watches.

use std::collections::{BTreeMap, BTreeSet};

use kaos_policy::contract::ResourceType;
use tokio_util::sync::CancellationToken;

use super::{places::Place, watched_type::Role};
use crate::cli::health::MissingRight;

/// The states of the watches.
#[derive(Debug, Default)]
pub(super) struct WatchStates {
    pub(super) running: BTreeMap<ResourceType, (Role, CancellationToken)>,
    /// The watches of claimed kinds that have not read all objects yet.
    pub(super) listing: BTreeSet<(ResourceType, Place)>,
    pub(super) missing: BTreeMap<(ResourceType, Place), MissingRight>,
    pub(super) broken: BTreeMap<(ResourceType, Place), String>,
}

impl WatchStates {
    /// Forgets a type. Returns the token with which the caller can end the watches of the type.
    pub(super) fn end(&mut self, of: &ResourceType) -> Option<CancellationToken> {
        self.listing.retain(|(other, _)| other != of);
        self.missing.retain(|(other, _), _| other != of);
        self.broken.retain(|(other, _), _| other != of);
        self.running.remove(of).map(|(_, stop)| stop)
    }
}
