//! Applies the rules of plan gates ([`crate::plan_gates`]) to the children that the watch shows.

use kaos_policy::{contract::Reference, render::Planned};
use serde_json::Value;

use crate::{plan_gates, watch::Seen};

/// Returns whether the plan must wait for its gates.
pub(crate) fn bind(planned: &Planned, object: &Value, children: &[Seen]) -> bool {
    plan_gates::bind(planned, object, are_there(planned, children))
}

/// Returns whether no plan of the object was ever applied.
pub(crate) fn is_first(planned: &Planned, object: &Value, children: &[Seen]) -> bool {
    plan_gates::is_first(object, are_there(planned, children))
}

/// Returns whether a child exists.
pub(crate) fn is_there(wanted: &Reference, children: &[Seen]) -> bool {
    let of = wanted.of();
    let is_it =
        |child: &Seen| child.of.group() == of.group() && child.of.kind == wanted.kind && child.name == wanted.name;
    children.iter().any(is_it)
}

fn are_there(planned: &Planned, children: &[Seen]) -> bool {
    plan_gates::are_there(planned, |wanted| is_there(wanted, children))
}
