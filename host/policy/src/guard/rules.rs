//! The guard's input for one plan, and the guard's reason if it rejects the plan.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::UserPrivileges;
use crate::{
    contract::{Claim, Plan, Violation},
    failure::Failure,
    limits::Limits,
    manifest::{Grants, Privilege},
    object::ObjectRef,
    settings::Effective,
};

/// The plan of the layer below, which the guard accepted before.
#[derive(Clone, Copy)]
pub(crate) struct Below<'a> {
    pub(crate) plan: &'a Plan,
    /// The parsed manifests of the plan.
    pub(crate) manifests: &'a [Value],
}

/// The overlays that set variables in a plan.
#[derive(Clone, Copy)]
pub(crate) struct Mapped<'a> {
    /// The number of the overlay that set each variable, by container and name; 1 is the lowest overlay.
    pub(crate) by: &'a BTreeMap<(String, String), usize>,
    /// The grants of the overlays, the lowest first.
    pub(crate) grants: &'a [&'a Grants],
}

impl<'a> Mapped<'a> {
    /// Returns the overlay that set a variable, and its grants.
    pub(super) fn overlay_of(&self, container: &str, name: &str) -> Option<(usize, &'a Grants)> {
        let at = *self.by.get(&(container.to_owned(), name.to_owned()))?;
        Some((at, self.grants.get(at.checked_sub(1)?)?))
    }
}

/// The claim, grants, limits, object and settings that decide whether the guard accepts the plan of one layer.
pub(crate) struct Rules<'a> {
    pub(crate) claim: &'a Claim,
    pub(crate) grants: &'a Grants,
    /// The plan of the layer below, if the plan is the answer of an overlay.
    pub(crate) below: Option<Below<'a>>,
    /// The overlays that set variables. `None` if the plan is the answer of an overlay.
    pub(crate) mapped: Option<Mapped<'a>>,
    pub(crate) limits: &'a Limits,
    pub(crate) owner: &'a ObjectRef,
    /// The object in the form that the user wrote.
    pub(crate) object: &'a Value,
    /// The effective settings of each layer, with the name of the layer's policy.
    pub(crate) layers: &'a [(&'a str, &'a Effective)],
    /// The number of the layer that returned the plan. 0 is the policy, and 1 is the lowest overlay.
    pub(crate) layer: usize,
    pub(crate) user_privileges: UserPrivileges,
    /// The privileges that settings of packages and of the operator's own ConfigMap can raise. `None` means all
    /// privileges. The flag `--grantable-privileges` sets this list, which also limits the privileges in grants. A
    /// limit for grants alone would have no effect: with its settings, a package could still raise the privilege.
    pub(crate) grantable: Option<&'a BTreeSet<Privilege>>,
}

impl Rules<'_> {
    /// Returns whether the operator's flags forbid that settings of packages raise this privilege.
    pub(super) fn is_beyond(&self, privilege: Privilege) -> bool {
        self.grantable.is_some_and(|listed| !listed.contains(&privilege))
    }

    /// Returns the number of the layer that set a variable. 0 is the layer that returned the plan.
    pub(super) fn author(&self, container: &str, name: &str) -> usize {
        self.mapped.and_then(|mapped| mapped.overlay_of(container, name)).map_or(0, |(layer, _)| layer)
    }
}

/// The reason why the guard rejects a plan. The variant shows who must correct the plan.
pub(crate) enum Stop {
    /// The author of the layer that returned the plan must correct the plan.
    Policy(Failure),
    /// The author of the overlay with this number must correct a variable that the overlay set.
    Overlay(usize, Failure),
    /// A user must correct a value: Kubernetes would reject a value in the object, or a setting of the object's
    /// namespace raises privilege.
    User(Vec<Violation>),
}
