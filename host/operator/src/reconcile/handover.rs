//! Workloads under another name: what serves under the old one stays until something serves under the new one.
//!
//! A policy may name children anew. The Deployment of the old name is then one that nobody wants any more, and taken away
//! at once it would leave nobody to serve while the pods of the new one start, or for good if they cannot.

use std::time::Duration;

use kaos_policy::{contract::Reference, stamp::pod_template};
use serde_json::Value;

use super::{context::Context, times::Transition, wanted::rank};
use crate::{moments::passed, watch::Seen};

/// How long after the new workload was made the old one goes in any case: as long as a Deployment may take by default. The
/// new one may be waiting for what the old one holds.
const PATIENCE: Duration = Duration::from_mins(10);

/// A workload that serves on, and the one that is to serve in its place.
pub(super) struct Handover {
    old: Reference,
    new: Reference,
    /// For how long it serves on at most.
    pub(super) left: Duration,
}

impl Context {
    /// The handover that is under way, if there is one among what is `leaving`.
    pub(super) fn handover(&self, leaving: &[Seen], plan: &[Value]) -> Option<Handover> {
        let old = leaving.iter().find(|child| runs_pods(child))?;
        let workloads = plan.iter().filter(|manifest| pod_template(manifest).is_some());
        workloads.map(Reference::of_object).find_map(|new| {
            let namespace = new.namespace.as_deref().unwrap_or_default();
            // What was just written may not have come back yet, and has nobody to serve either.
            let live = self.watch.live(&new.of(), namespace, &new.name).and_then(|seen| seen.object());
            if !live.as_ref().is_none_or(is_starting) {
                return None;
            }
            let made = live.as_ref().and_then(|live| live["metadata"]["creationTimestamp"].as_str());
            let left = PATIENCE.checked_sub(passed(made, self.rules.clock.now())).filter(|left| !left.is_zero())?;
            Some(Handover { old: old.reference(), new, left })
        })
    }
}

impl Handover {
    /// What an Event tells of it.
    pub(super) fn told(&self) -> Transition {
        let Self { old, new, .. } = self;
        let message = format!("{} {} serves until {} {} does", old.kind, old.name, new.kind, new.name);
        Transition { reason: "HandingOver".to_owned(), message, warning: false }
    }
}

/// Whether a child that leaves stays during a handover: what runs pods, what these may need, and what leads to them unless
/// nothing of the kind is wanted any more.
pub(super) fn stays(child: &Seen, plan: &[Value]) -> bool {
    let is_of_its_kind = |manifest: &Value| manifest["kind"] == child.of.kind.as_str();
    runs_pods(child) || rank(&child.of, false) == 0 || plan.iter().any(is_of_its_kind)
}

/// Whether a child is a workload. One of an earlier operator is known by its kind alone.
fn runs_pods(child: &Seen) -> bool {
    child.object().map_or(child.of.group() == "apps", |live| pod_template(&live).is_some())
}

/// Whether a workload has no pod that serves yet, as far as its kind tells. One that is to run beside no other, or not at
/// all, need not be waited for.
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
        assert!(!starts(json!({"replicas": 0}), json!({})), "it is to have no pods");
        assert!(!starts(json!({}), json!({})), "a Job, or what else tells nothing of the kind");
        assert!(!starts(json!({"replicas": 1, "strategy": {"type": "Recreate"}}), json!({})));
    }
}
