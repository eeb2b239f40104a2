//! Finds the live children in an observation, and counts their pods.
//!
//! ```
//! use kaos_policy_sdk::types::Outcome;
//! use kaos_policy_sdk::{ObservationExt as _, testing};
//! use serde_json::json;
//!
//! let status = json!({"observedGeneration": 1, "replicas": 3, "updatedReplicas": 2, "availableReplicas": 3});
//! let live = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "q", "generation": 1},
//!     "spec": {"replicas": 3}, "status": status});
//! let rollout = testing::observation(Outcome::Applied).child(&live).build().rollout("StatefulSet");
//! assert_eq!((rollout.available, rollout.wanted), (2, 3));
//! assert!(rollout.serves() && !rollout.is_complete());
//! ```

use crate::Object;
use crate::types::{Observation, Outcome, Report};
use alloc::borrow::ToOwned;
use serde_json::Value;

/// The kinds that the default report counts as workloads.
const WORKLOADS: [&str; 2] = ["Deployment", "StatefulSet"];

/// Reads the live children of an observation.
pub trait ObservationExt {
    /// Returns the first live child of `kind`, or `None` if the cluster has no such child.
    fn live(&self, kind: &str) -> Option<Object>;
    /// Returns the counts of the first live child of `kind`, a Deployment or a StatefulSet. Without a live child, all
    /// counts are 0, and [`Rollout::serves`] and [`Rollout::is_complete`] return false.
    fn rollout(&self, kind: &str) -> Rollout;
}

impl ObservationExt for Observation {
    fn live(&self, kind: &str) -> Option<Object> {
        let of_kind = self.children.iter().filter(|child| child.identity.kind == kind);
        of_kind.filter_map(|child| child.live.as_deref()).map(Object::parse).next()
    }

    fn rollout(&self, kind: &str) -> Rollout {
        self.live(kind).as_ref().map(Rollout::of).unwrap_or_default()
    }
}

/// The numbers of pods of a Deployment or a StatefulSet.
///
/// While a workload replaces its pods, pods of an earlier generation can still serve, but `available` does not count
/// them. Until the controller has observed a change of the workload, `available` is 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rollout {
    /// The number of pods that the workload wants.
    pub wanted: u64,
    /// The number of all pods, including the pods of earlier generations.
    pub replicas: u64,
    /// The number of ready pods, including the pods of earlier generations.
    pub ready: u64,
    /// The number of available pods of the current generation.
    pub available: u64,
    is_live: bool,
}

impl Rollout {
    /// Reads a live Deployment or StatefulSet.
    pub fn of(live: &Object) -> Self {
        let status = |field: &str| live.at(&["status", field]).and_then(Value::as_u64).unwrap_or_default();
        let observed = live.at(&["status", "observedGeneration"]).and_then(Value::as_i64).unwrap_or_default();
        let old = status("replicas").saturating_sub(status("updatedReplicas"));
        let is_current = observed >= live.generation();
        Self {
            wanted: live.at(&["spec", "replicas"]).and_then(Value::as_u64).unwrap_or(1),
            replicas: status("replicas"),
            ready: status("readyReplicas"),
            // Some available pods can be old. Subtract all old pods, so that the number is never too high.
            available: if is_current { status("availableReplicas").saturating_sub(old) } else { 0 },
            is_live: true,
        }
    }

    /// Returns whether a pod of the current generation is available.
    pub fn serves(&self) -> bool {
        self.available > 0
    }

    /// Returns whether all wanted pods are available and of the current generation, and no other pods exist. A workload
    /// that wants no pods is complete when its last pod is gone. A workload that does not exist is never complete.
    pub fn is_complete(&self) -> bool {
        self.is_live && self.available == self.wanted && self.replicas == self.wanted
    }
}

/// Builds the default report, for a policy that does not implement `assess`. The object is ready as soon as all
/// children exist and each workload has an available pod of the current generation, or wants no pods. The object stays
/// ready while plan gates hold back a change. `tests/data/default-reports.json` has test cases for all languages.
pub(crate) fn assess(seen: &Observation) -> Report {
    let workloads = || seen.children.iter().filter(|child| WORKLOADS.contains(&child.identity.kind.as_str()));
    let is_up = |text: &str| {
        let rollout = Rollout::of(&Object::parse(text));
        rollout.serves() || rollout.wanted == 0
    };
    let (all, up) = (workloads().count(), workloads().filter(|child| child.live.as_deref().is_some_and(is_up)).count());
    let exist = seen.children.iter().all(|child| child.live.is_some());
    let accepted = match &seen.outcome {
        Outcome::Applied => true,
        // Without children, the report cannot tell whether the host applied an earlier plan.
        Outcome::Gated => !seen.children.is_empty(),
        Outcome::Refused(_) | Outcome::Failed(_) => false,
    };
    let ready = accepted && exist && up == all;
    let phase = match &seen.outcome {
        Outcome::Refused(_) | Outcome::Failed(_) => "Failed",
        Outcome::Applied | Outcome::Gated if ready => "Ready",
        Outcome::Applied | Outcome::Gated => "Pending",
    };
    Report {
        ready,
        phase: phase.to_owned(),
        message: format!("{up} of {all} workloads available"),
        ..Report::default()
    }
}

#[cfg(test)]
mod tests {
    use super::{ObservationExt as _, Rollout, assess};
    use crate::types::Outcome;
    use crate::{Object, need, refusal, testing};
    use serde_json::{Value, json};

    fn live(kind: &str, wanted: u64, status: &Value) -> Value {
        json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "q", "generation": 2},
            "spec": {"replicas": wanted}, "status": status})
    }

    fn rollout(wanted: u64, status: &Value) -> Rollout {
        Rollout::of(&Object::new(live("StatefulSet", wanted, status)))
    }

    fn status(observed: u64, [replicas, updated, available]: [u64; 3]) -> Value {
        json!({"observedGeneration": observed, "replicas": replicas, "updatedReplicas": updated,
            "readyReplicas": available, "availableReplicas": available})
    }

    #[test]
    fn a_rollout_serves_with_one_new_pod_and_is_complete_with_all() {
        let all = rollout(3, &status(2, [3, 3, 3]));
        assert!(all.serves() && all.is_complete());
        assert_eq!((all.wanted, all.replicas, all.ready, all.available), (3, 3, 3, 3));
        let half = rollout(3, &status(2, [3, 2, 2]));
        assert!(half.serves() && !half.is_complete());
    }

    #[test]
    fn pods_of_an_earlier_generation_do_not_count() {
        assert!(!rollout(3, &status(2, [3, 1, 2])).serves());
        assert!(!rollout(3, &status(1, [3, 3, 3])).serves());
        let unobserved = rollout(3, &status(1, [3, 3, 3]));
        assert_eq!((unobserved.ready, unobserved.is_complete()), (3, false));
    }

    #[test]
    fn a_surplus_pod_delays_the_completion() {
        assert!(!rollout(1, &status(2, [2, 2, 1])).is_complete());
        assert!(!rollout(0, &status(2, [1, 1, 0])).is_complete());
        assert!(rollout(0, &status(2, [0, 0, 0])).is_complete());
    }

    #[test]
    fn a_missing_workload_has_no_pods_and_is_not_complete() {
        let seen = testing::observation(Outcome::Applied)
            .missing(need::reference("apps/v1", "StatefulSet", "q"))
            .child(&live("Deployment", 1, &Value::Null))
            .build();
        let missing = seen.rollout("StatefulSet");
        assert!(!missing.serves() && !missing.is_complete() && missing == Rollout::default());
        assert_eq!(seen.live("Deployment").unwrap().name(), "q");
        assert!(seen.live("StatefulSet").is_none());
        assert_eq!(Rollout::of(&Object::new(json!({}))).wanted, 1);
    }

    #[test]
    fn the_default_report_agrees_with_the_cases_of_all_languages() {
        let cases: Vec<Value> = serde_json::from_str(include_str!("../tests/data/default-reports.json")).unwrap();
        assert!(cases.len() > 10);
        for case in cases {
            let outcome = match case["outcome"].as_str() {
                Some("applied") => Outcome::Applied,
                Some("gated") => Outcome::Gated,
                Some("refused") => Outcome::Refused(refusal::unsupported("no")),
                _ => Outcome::Failed("no".to_owned()),
            };
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            let mut seen = testing::observation(outcome);
            for child in case["children"].as_array().unwrap() {
                let [api_version, kind, name] = ["apiVersion", "kind", "name"].map(|field| text(&child[field]));
                seen = match &child["live"] {
                    Value::Null => seen.missing(need::reference(&api_version, &kind, &name)),
                    live => seen.child(live),
                };
            }
            let report = assess(&seen.build());
            let report = json!({"ready": report.ready, "phase": report.phase, "message": report.message});
            assert_eq!(report, case["report"], "{}", case["name"]);
        }
    }
}
