//! The input of the guard for one plan, and the person who must correct a plan that the guard rejects.

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

/// The claim, grants, limits, object and settings that decide whether the guard accepts a plan.
pub(crate) struct Rules<'a> {
    pub(crate) claim: &'a Claim,
    pub(crate) grants: &'a Grants,
    /// The grants of the overlays, which can change the mapping in the plan.
    pub(crate) overlay_grants: &'a [&'a Grants],
    pub(crate) limits: &'a Limits,
    pub(crate) owner: &'a ObjectRef,
    /// The object in the form that the user wrote.
    pub(crate) object: &'a Value,
    /// The settings from the object's annotations.
    pub(crate) annotated: &'a Value,
    /// The settings from the operator's owner.
    pub(crate) settings: &'a Value,
    /// All effective settings, each with the name of its policy.
    pub(crate) layers: &'a [(&'a str, &'a Effective)],
    pub(crate) user_privileges: UserPrivileges,
    /// The limit on the privileges that settings of packages can raise. `None` means that these settings may raise all
    /// privileges.
    pub(crate) cap: Option<&'a Cap<'a>>,
}

/// The reason why the guard rejects a plan. The variant shows who must correct the plan.
pub(crate) enum Stop {
    /// The policy's author.
    Policy(Failure),
    /// The user must correct the plan: the object has a value that Kubernetes would reject, or a setting of its
    /// namespace raises privilege.
    User(Vec<Violation>),
}
