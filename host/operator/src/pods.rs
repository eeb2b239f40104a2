//! Counts the pods of a manifest.

use kaos_policy::stamp::pod_template_pointer;
use serde_json::Value;

/// Returns the number of pods of a manifest. If nodes or an autoscaler decide the number, counts the pods of the live
/// child, or one pod if there is no live child.
pub(crate) fn pods(manifest: &Value, live: impl FnOnce() -> Option<Value>) -> u64 {
    if pod_template_pointer(manifest).is_none() {
        return 0;
    }
    let live = |field: &str| live().and_then(|live| live.pointer(field)?.as_u64());
    let spec = &manifest["spec"];
    let many = match manifest["kind"].as_str() {
        // A CronJob starts new pods in its next run anyway, so it has no pods to replace.
        Some("CronJob") => Some(0),
        Some("Job") => spec["parallelism"].as_u64(),
        Some("DaemonSet") => live("/status/desiredNumberScheduled"),
        _ => spec["replicas"].as_u64().or_else(|| live("/spec/replicas")),
    };
    many.unwrap_or(1)
}

/// The pods of an object's workloads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PodCounts {
    /// The number of pods that the workloads should have.
    pub(crate) wanted: u64,
    /// The number of these pods that are not available yet with the newest pod template.
    pub(crate) missing: u64,
    /// Whether the object has workloads, and a user scaled all of them to zero.
    pub(crate) is_scaled_to_zero: bool,
}

impl PodCounts {
    /// Counts the pods of live workloads.
    pub(crate) fn of<'a>(workloads: impl IntoIterator<Item = &'a Value>) -> Self {
        let (mut counts, mut can_scale) = (Self::default(), false);
        for live in workloads {
            let wanted = pods(live, || Some(live.clone()));
            // Only for these kinds, a wanted number of 0 shows that a user scaled the workload to zero.
            can_scale |= matches!(live["kind"].as_str(), Some("Deployment" | "StatefulSet"));
            counts.wanted = counts.wanted.saturating_add(wanted);
            counts.missing = counts.missing.saturating_add(missing(live, wanted));
        }
        counts.is_scaled_to_zero = can_scale && counts.wanted == 0;
        counts
    }
}

/// Returns how many of the wanted pods of a workload are not available with the newest template. If the user lets the
/// workload keep pods with an old template (`OnDelete`, a partition, paused), each available pod counts as new. Returns
/// 0 for all kinds except Deployments, StatefulSets and `DaemonSets`.
fn missing(live: &Value, wanted: u64) -> u64 {
    let number = |field: &str| live["status"][field].as_u64().unwrap_or_default();
    let (all, updated, available) = match live["kind"].as_str() {
        Some("Deployment" | "StatefulSet") => ("replicas", "updatedReplicas", "availableReplicas"),
        Some("DaemonSet") => ("currentNumberScheduled", "updatedNumberScheduled", "numberAvailable"),
        _ => return 0,
    };
    let (spec, metadata) = (&live["spec"], &live["metadata"]);
    let strategy = &spec["updateStrategy"];
    let keeps_old = strategy["type"] == "OnDelete"
        || strategy["rollingUpdate"]["partition"].as_u64().is_some_and(|partition| partition > 0)
        || spec["paused"] == true;
    if keeps_old {
        return wanted.saturating_sub(number(available));
    }
    let observed = live["status"]["observedGeneration"].as_i64() >= metadata["generation"].as_i64();
    // The status does not say how many of the available pods are new. But if more pods are available than there are old
    // pods, the others are new.
    let old = number(all).saturating_sub(number(updated));
    let new = if observed { number(available).saturating_sub(old).min(number(updated)) } else { 0 };
    wanted.saturating_sub(new)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn workload(kind: &str, spec: &Value) -> Value {
        let mut manifest = json!({"apiVersion": "apps/v1", "kind": kind, "spec": spec});
        manifest["spec"]["template"] = json!({"spec": {"containers": []}});
        manifest
    }

    #[test]
    fn the_replicas_of_a_workload_are_its_pods() {
        let pods = |manifest: &Value| pods(manifest, || None);
        assert_eq!(pods(&workload("Deployment", &json!({"replicas": 3}))), 3);
        assert_eq!(pods(&workload("Deployment", &json!({"replicas": 0}))), 0);
        assert_eq!(pods(&workload("StatefulSet", &json!({}))), 1);
        assert_eq!(pods(&json!({"apiVersion": "v1", "kind": "Service", "spec": {"replicas": 3}})), 0);
    }

    #[test]
    fn the_live_child_tells_the_pods_that_the_manifest_leaves_open() {
        let live = || Some(json!({"spec": {"replicas": 7}, "status": {"desiredNumberScheduled": 12}}));
        assert_eq!(pods(&workload("Deployment", &json!({})), live), 7);
        assert_eq!(pods(&workload("Deployment", &json!({"replicas": 2})), live), 2);
        assert_eq!(pods(&workload("DaemonSet", &json!({})), live), 12);
    }

    #[test]
    fn a_pod_is_missing_until_it_is_available_with_the_newest_template() {
        let live = |kind: &str, spec: &Value, generation: i64, status: &Value| {
            let mut live = workload(kind, spec);
            (live["metadata"], live["status"]) = (json!({"generation": generation}), status.clone());
            PodCounts::of([&live])
        };
        let counts = |wanted, missing, is_scaled_to_zero| PodCounts { wanted, missing, is_scaled_to_zero };
        let status = |replicas: u64, updated: u64, available: u64| {
            json!({"observedGeneration": 2, "replicas": replicas, "updatedReplicas": updated,
                   "availableReplicas": available})
        };
        let four = json!({"replicas": 4});
        for (told, missing) in [
            (status(4, 4, 4), 0),
            (status(5, 1, 4), 4),
            (status(5, 1, 5), 3),
            (status(4, 4, 1), 3),
            (json!({"observedGeneration": 1, "replicas": 4, "updatedReplicas": 4, "availableReplicas": 4}), 4),
            (json!({}), 4),
        ] {
            assert_eq!(live("Deployment", &four, 2, &told), counts(4, missing, false), "{told}");
        }
        let on_delete = json!({"replicas": 4, "updateStrategy": {"type": "OnDelete"}});
        assert_eq!(live("StatefulSet", &on_delete, 2, &status(4, 0, 4)), counts(4, 0, false));
        assert_eq!(live("Deployment", &json!({"replicas": 0}), 2, &status(0, 0, 0)), counts(0, 0, true));
        assert_eq!(live("CronJob", &json!({}), 2, &json!({})), counts(0, 0, false));
        assert_eq!(PodCounts::of([]), PodCounts::default());
    }
}
