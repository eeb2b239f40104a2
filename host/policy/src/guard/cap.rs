//! Limits the privileges that the settings of installed packages may raise, to the privileges that the operator's flags
//! allow in grants. The same file contains settings and grants, so a limit on grants alone would have no effect.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::manifest::Privilege;

/// The limit on the privileges that settings of packages and of the operator's own ConfigMap can raise.
pub(crate) struct Cap<'a> {
    /// The privileges that settings of packages and of the operator's own ConfigMap can raise.
    pub(crate) listed: &'a BTreeSet<Privilege>,
    /// The settings from the process's own flags, to which the limit does not apply.
    pub(crate) flags: Value,
}

impl Cap<'_> {
    /// Returns whether the limit forbids settings to raise a privilege.
    pub(super) fn is_beyond(&self, privilege: Privilege) -> bool {
        !self.listed.contains(&privilege)
    }
}
