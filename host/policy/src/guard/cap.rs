//! What settings may raise that somebody installs: as much as whoever starts the operator lets `policy.yaml` grant. Settings
//! stand in the same file, so that a cap on grants alone would cap nothing.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::manifest::Privilege;

/// The most that settings of packages, and of the operator's own ConfigMap, may raise.
pub(crate) struct Cap<'a> {
    /// Privileges that they may raise.
    pub(crate) listed: &'a BTreeSet<Privilege>,
    /// The settings that are not held to it: those of the process's own flags.
    pub(crate) flags: Value,
}

impl Cap<'_> {
    /// Whether a privilege is beyond it.
    pub(super) fn is_beyond(&self, privilege: Privilege) -> bool {
        !self.listed.contains(&privilege)
    }
}
