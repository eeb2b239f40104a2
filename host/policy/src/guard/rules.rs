//! Collects everything that decides whether a plan may pass, and says who has to correct a plan that may not.

use serde_json::Value;

use super::{UserPrivileges, cap::Cap};
use crate::{
    contract::{Claim, Violation},
    failure::Failure,
    limits::Limits,
    manifest::Grants,
    object::ObjectRef,
    settings::Effective,
};

/// Everything that decides what a plan may contain.
pub(crate) struct Rules<'a> {
    pub(crate) claim: &'a Claim,
    pub(crate) grants: &'a Grants,
    /// The grants of the overlays, which change the mapping.
    pub(crate) overlay_grants: &'a [&'a Grants],
    pub(crate) limits: &'a Limits,
    pub(crate) owner: &'a ObjectRef,
    /// The object as the user wrote it.
    pub(crate) object: &'a Value,
    /// The settings from the object's annotations.
    pub(crate) annotated: &'a Value,
    /// The settings from the operator's owner.
    pub(crate) settings: &'a Value,
    /// All settings, by the policy's name.
    pub(crate) layers: &'a [(&'a str, &'a Effective)],
    pub(crate) user_privileges: UserPrivileges,
    /// The privileges that settings of packages may raise at most; all privileges if `None`.
    pub(crate) cap: Option<&'a Cap<'a>>,
}

/// The person who must correct a refused plan.
pub(crate) enum Stop {
    /// The policy's author.
    Policy(Failure),
    /// The user: the object has a value that Kubernetes would reject, or a setting of its namespace raises privilege.
    User(Vec<Violation>),
}
