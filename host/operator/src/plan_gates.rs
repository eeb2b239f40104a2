//! Decides whether plan gates hold back a plan. A pass and the comparison of plans (`plan`) use the same rules.
//!
//! Gates hold back an object's plans only until the operator has applied one plan completely. If a plan sets
//! `gates_hold`, its gates hold it back also later, while the object's workloads exist. So a missing dependency
//! restarts no pod.

use kaos_policy::{contract::Reference, render::Planned, stamp::pod_template};
use serde_json::Value;

/// Returns whether the plan must wait for its gates. The parameter `are_there` is the result of the function
/// [`are_there`]: whether all [`decisive`] children exist.
pub(crate) fn bind(planned: &Planned, object: &Value, are_there: bool) -> bool {
    !planned.gates.is_empty() && (is_first(object, are_there) || (planned.gates_hold && are_there))
}

/// Returns whether no plan of the object was ever applied. The status has a field `appliedGeneration` since the first
/// apply. If the kind's schema lacks this field, or if an earlier operator created the children, the existence of the
/// children decides.
pub(crate) fn is_first(object: &Value, are_there: bool) -> bool {
    !was_applied(object) && !are_there
}

/// Returns whether the status shows that the operator has applied a plan of the object completely.
pub(crate) fn was_applied(object: &Value) -> bool {
    object["status"]["appliedGeneration"].is_i64()
}

/// Returns whether the plan need not wait for its gates, whichever children exist. Returns `false` if the plan sets
/// `gates_hold` and has gates, because then the existing children decide whether the plan waits.
pub(crate) fn let_through(planned: &Planned, was_applied: bool) -> bool {
    planned.gates.is_empty() || (was_applied && !planned.gates_hold)
}

/// Returns the children whose existence decides whether gates hold back the plan: the planned workloads. For a plan
/// without workloads, returns all children.
pub(crate) fn decisive(planned: &Planned) -> Vec<Reference> {
    let (workloads, others): (Vec<&Value>, Vec<&Value>) =
        planned.manifests.iter().partition(|manifest| pod_template(manifest).is_some());
    // The purpose of gates is to hold back the first start of pods, so workloads decide.
    let decisive = if workloads.is_empty() { others } else { workloads };
    decisive.into_iter().map(Reference::of_object).collect()
}

/// Returns whether all [`decisive`] children exist. Returns false if there are none.
pub(crate) fn are_there(planned: &Planned, is_there: impl Fn(&Reference) -> bool) -> bool {
    let decisive = decisive(planned);
    !decisive.is_empty() && decisive.iter().all(is_there)
}
