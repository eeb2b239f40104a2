//! The input of the guard for one plan, and the person who must correct a plan that the guard rejects.

use std::collections::BTreeSet;

use serde_json::Value;

use super::UserPrivileges;
use crate::{
    contract::{Claim, Violation},
    failure::Failure,
    limits::Limits,
    manifest::{Grants, Privilege},
    object::ObjectRef,
    settings::Effective,
};

/// The claim, grants, limits, object and settings that decide whether the guard accepts a plan.
pub(crate) struct Rules<'a> {
    pub(crate) claim: &'a Claim,
    pub(crate) grants: &'a Grants,
    /// The grants of the overlays. Overlays change the mapping.
    pub(crate) overlay_grants: &'a [&'a Grants],
    pub(crate) limits: &'a Limits,
    pub(crate) owner: &'a ObjectRef,
    /// The object in the form that the user wrote.
    pub(crate) object: &'a Value,
    /// The settings from the operator's owner.
    pub(crate) settings: &'a Value,
    /// All effective settings, each with the name of its policy.
    pub(crate) layers: &'a [(&'a str, &'a Effective)],
    pub(crate) user_privileges: UserPrivileges,
    /// The privileges that settings of packages and of the operator's own ConfigMap may raise. `None`: all privileges.
    /// The operator's flags limit the privileges that grants can list. The same file contains settings and grants, so a
    /// limit on grants alone would have no effect.
    pub(crate) grantable: Option<&'a BTreeSet<Privilege>>,
}

impl Rules<'_> {
    /// Returns whether settings of packages may not raise a privilege.
    pub(super) fn is_beyond(&self, privilege: Privilege) -> bool {
        self.grantable.is_some_and(|listed| !listed.contains(&privilege))
    }
}

/// The error for a plan, by the person who must correct it.
pub(crate) enum Stop {
    /// The policy's author.
    Policy(Failure),
    /// The user: the object has a value that Kubernetes would reject, or a setting of its namespace raises privilege.
    User(Vec<Violation>),
}
