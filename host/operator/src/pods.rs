//! Counts the pods of a manifest.

use kaos_policy::stamp::pod_template_pointer;
use serde_json::Value;

/// Returns the number of pods of a manifest. If the manifest does not say how many, because nodes or an autoscaler
/// decide, counts the pods of the live child, and one pod without a live child.
pub(crate) fn pods(manifest: &Value, live: impl FnOnce() -> Option<Value>) -> u64 {
    if pod_template_pointer(manifest).is_none() {
        return 0;
    }
    let live = |field: &str| live().and_then(|live| live.pointer(field)?.as_u64());
    let spec = &manifest["spec"];
    let many = match manifest["kind"].as_str() {
        // The next run of a CronJob starts new pods anyway.
        Some("CronJob") => Some(0),
        Some("Job") => spec["parallelism"].as_u64(),
        Some("DaemonSet") => live("/status/desiredNumberScheduled"),
        _ => spec["replicas"].as_u64().or_else(|| live("/spec/replicas")),
    };
    many.unwrap_or(1)
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
}
