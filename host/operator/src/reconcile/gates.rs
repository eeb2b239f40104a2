//! Whether the gates of a plan bind: until it was applied once in full, and never again.

use kaos_policy::{contract::Reference, render::Planned, stamp::pod_template};
use serde_json::Value;

use crate::watch::Seen;

/// Whether the plan has to wait for its gates.
pub(crate) fn bind(planned: &Planned, object: &Value, children: &[Seen]) -> bool {
    !planned.gates.is_empty() && is_first(planned, object, children)
}

/// Whether the plan was never applied. The status says that it was; where the kind's schema has no room for that, or an
/// earlier operator made the children, the children say so themselves.
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
    // What the gates hold back is the first start of pods.
    let decisive = if workloads.is_empty() { others } else { workloads };
    decisive.is_empty() || !decisive.iter().all(is_there)
}
