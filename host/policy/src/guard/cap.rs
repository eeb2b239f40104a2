//! Limits the privileges that installed settings may raise: only privileges that the operator's flags allow in grants.
//! Settings are in the same file as grants, so a cap on grants alone would have no effect.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::manifest::Privilege;

/// The privileges that settings of packages and of the operator's own ConfigMap may raise at most.
pub(crate) struct Cap<'a> {
    /// The privileges that these settings may raise.
    pub(crate) listed: &'a BTreeSet<Privilege>,
    /// The settings from the process's own flags. The cap does not apply to them.
    pub(crate) flags: Value,
}

impl Cap<'_> {
    /// Whether a privilege is outside the cap.
    pub(super) fn is_beyond(&self, privilege: Privilege) -> bool {
        !self.listed.contains(&privilege)
    }
}
