//! Plan gates. They bind until the operator has applied a plan in full once, and never again.

use kaos_policy::{contract::Reference, render::Planned, stamp::pod_template};
use serde_json::Value;

use crate::watch::Seen;

/// Whether the plan has to wait for its gates.
pub(crate) fn bind(planned: &Planned, object: &Value, children: &[Seen]) -> bool {
    !planned.gates.is_empty() && is_first(planned, object, children)
}

/// Whether no plan of the object was ever applied. The status records the first apply. If the kind's schema has no such
/// field, or an earlier operator made the children, the existence of the children decides.
pub(crate) fn is_first(planned: &Planned, object: &Value, children: &[Seen]) -> bool {
    if object["status"]["appliedGeneration"].is_i64() {
        return false;
    }
    let is_there = |manifest: &&Value| {
        let wanted = Reference::of_object(manifest);
        let same = |child: &Seen| {
            child.of.group() == wanted.of().group() && child.of.kind == wanted.kind && child.name == wanted.name
        };
        children.iter().any(same)
    };
    let (workloads, others): (Vec<&Value>, Vec<&Value>) =
        planned.manifests.iter().partition(|manifest| pod_template(manifest).is_some());
    // The gates hold back the first start of pods.
    let decisive = if workloads.is_empty() { others } else { workloads };
    decisive.is_empty() || !decisive.iter().all(is_there)
}
