//! Handles renamed workloads: the workload with the old name stays until the workload with the new name serves.
//!
//! A policy may rename children. After such a rename, the Deployment with the old name is no longer in the plan.
//! Deleting this Deployment immediately would interrupt the service until the new pods are ready, or permanently if the
//! new pods never become ready.

use std::time::Duration;

use jiff::Timestamp;
use kaos_policy::{contract::Reference, stamp::pod_template};
use serde_json::Value;

use crate::reconcile::{children::final_manifest::rank, event_text::EventText};
use crate::{
    timestamps::passed,
    watch::{Seen, Watch},
};

/// The maximum time for which the old workload stays after the creation of the new workload. It equals the default
/// progress deadline of a Deployment. The time needs a limit, because the new workload may wait for a resource that the
/// old workload uses.
const LONGEST_HANDOVER: Duration = Duration::from_mins(10);

/// A workload that keeps serving, and the workload that replaces it.
pub(crate) struct Handover {
    old: Reference,
    new: Reference,
    /// The remaining time in which the old workload stays and serves.
    pub(crate) left: Duration,
}

/// Returns the handover that is in progress; `None` if no workload in `leaving` must wait for a new workload of the
/// plan.
pub(crate) fn handover(watch: &Watch, now: Timestamp, leaving: &[Seen], plan: &[Value]) -> Option<Handover> {
    let old = leaving.iter().find(|child| runs_pods(child))?;
    let workloads = plan.iter().filter(|manifest| pod_template(manifest).is_some());
    workloads.map(Reference::of_object).find_map(|new| {
        let namespace = new.namespace.as_deref().unwrap_or_default();
        // A workload that the watch does not show also counts as starting, because the watch may not have reported it
        // yet.
        let live = watch.live(&new.of(), namespace, &new.name).and_then(|seen| seen.object());
        if !live.as_ref().is_none_or(is_starting) {
            return None;
        }
        let made = live.as_ref().and_then(|live| live["metadata"]["creationTimestamp"].as_str());
        let left = LONGEST_HANDOVER.checked_sub(passed(made, now)).filter(|left| !left.is_zero())?;
        Some(Handover { old: old.reference(), new, left })
    })
}

impl Handover {
    pub(crate) fn told(&self) -> EventText {
        let Self { old, new, .. } = self;
        let message = format!("{} {} serves until {} {} serves", old.kind, old.name, new.kind, new.name);
        EventText { reason: "HandingOver".to_owned(), message, warning: false }
    }
}

/// Returns whether a child that is no longer in the plan stays until the handover ends. Workloads, configuration and
/// protection stay. Any other child, such as a Service or a route, stays only if the plan has a child of the same kind.
pub(crate) fn stays(child: &Seen, plan: &[Value]) -> bool {
    let is_of_its_kind = |manifest: &Value| manifest["kind"] == child.of.kind.as_str();
    runs_pods(child) || rank(&child.of, false) == 0 || plan.iter().any(is_of_its_kind)
}

/// Returns whether a child is a workload. If the watch has only the metadata of the child, the API group decides.
fn runs_pods(child: &Seen) -> bool {
    child.object().map_or(child.of.group() == "apps", |live| pod_template(&live).is_some())
}

/// Returns whether a workload has no available pod yet. Returns `false` for a workload with zero replicas or with the
/// strategy `Recreate`.
fn is_starting(live: &Value) -> bool {
    let (spec, status) = (&live["spec"], &live["status"]);
    let is_asked_to = spec["replicas"].as_i64().is_some_and(|replicas| replicas > 0);
    let serves = status["availableReplicas"].as_i64().is_some_and(|available| available > 0);
    is_asked_to && !serves && spec["strategy"]["type"] != "Recreate"
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_workload_starts_while_none_of_its_pods_serve() {
        let starts = |spec, status| is_starting(&json!({"spec": spec, "status": status}));
        assert!(starts(json!({"replicas": 1}), json!({})));
        assert!(starts(json!({"replicas": 2}), json!({"replicas": 2, "availableReplicas": 0})));
        assert!(!starts(json!({"replicas": 2}), json!({"availableReplicas": 1})));
        assert!(!starts(json!({"replicas": 0}), json!({})), "a workload with zero replicas is not starting");
        assert!(!starts(json!({}), json!({})), "other kinds report no available pods");
        assert!(!starts(json!({"replicas": 1, "strategy": {"type": "Recreate"}}), json!({})));
    }
}
