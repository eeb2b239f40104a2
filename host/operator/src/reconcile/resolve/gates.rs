//! Decides whether plan gates hold back a plan. Gates hold back plans only until the operator has applied one plan
//! completely. If the plan sets `gates_hold`, the gates also hold back later plans while the object's workloads exist.
//! So a missing dependency restarts no pod.

use kaos_policy::{contract::Reference, render::Planned, stamp::pod_template};
use serde_json::Value;

use crate::watch::Seen;

/// Returns whether the plan must wait for its gates.
pub(crate) fn bind(planned: &Planned, object: &Value, children: &[Seen]) -> bool {
    let holds = || planned.gates_hold && are_there(planned, children);
    !planned.gates.is_empty() && (is_first(planned, object, children) || holds())
}

/// Returns whether no plan of the object was ever applied. The status records the first apply. If the kind's schema has
/// no field for this record, or if an earlier operator created the children, the existence of the children decides.
pub(crate) fn is_first(planned: &Planned, object: &Value, children: &[Seen]) -> bool {
    !object["status"]["appliedGeneration"].is_i64() && !are_there(planned, children)
}

/// Returns whether the planned workloads exist. For a plan without workloads, returns whether the other children exist.
fn are_there(planned: &Planned, children: &[Seen]) -> bool {
    let is_there = |manifest: &&Value| {
        let wanted = Reference::of_object(manifest);
        let same = |child: &Seen| {
            child.of.group() == wanted.of().group() && child.of.kind == wanted.kind && child.name == wanted.name
        };
        children.iter().any(same)
    };
    let (workloads, others): (Vec<&Value>, Vec<&Value>) =
        planned.manifests.iter().partition(|manifest| pod_template(manifest).is_some());
    // The purpose of gates is to hold back the first start of pods, so workloads decide.
    let decisive = if workloads.is_empty() { others } else { workloads };
    !decisive.is_empty() && decisive.iter().all(is_there)
}
