//! Everything that decides what a plan may contain, and who has to mend one that may not pass.

use serde_json::Value;

use super::{UserPrivileges, cap::Cap};
use crate::{
    contract::{Claim, Violation},
    failure::Failure,
    limits::Limits,
    manifest::Grants,
    render::ObjectRef,
    settings::Effective,
};

/// Everything that decides what a plan may contain.
pub(crate) struct Rules<'a> {
    pub(crate) claim: &'a Claim,
    pub(crate) grants: &'a Grants,
    /// Those of the layers that change the mapping.
    pub(crate) overlay_grants: &'a [&'a Grants],
    pub(crate) limits: &'a Limits,
    pub(crate) owner: &'a ObjectRef,
    /// The object as the user wrote it.
    pub(crate) object: &'a Value,
    /// The settings that the object's annotations give.
    pub(crate) annotated: &'a Value,
    /// The settings that whoever runs the operator gives.
    pub(crate) settings: &'a Value,
    /// All settings, by the name of the policy.
    pub(crate) layers: &'a [(&'a str, &'a Effective)],
    pub(crate) user_privileges: UserPrivileges,
    /// What settings of packages may raise at most; everything, where there is none.
    pub(crate) cap: Option<&'a Cap<'a>>,
}

/// Who has to mend a plan that may not pass.
pub(crate) enum Stop {
    /// The policy's author.
    Policy(Failure),
    /// The user: the object has a value that Kubernetes would not take, or a setting of its namespace raises privilege.
    User(Vec<Violation>),
}
