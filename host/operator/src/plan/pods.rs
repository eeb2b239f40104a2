//! Counts the pods of a manifest.

use kaos_policy::stamp::pod_template_pointer;
use serde_json::Value;

/// Returns the number of pods that a manifest asks for. Counts one pod for a workload that does not say how many.
pub(super) fn pods(manifest: &Value) -> u64 {
    if pod_template_pointer(manifest).is_none() {
        return 0;
    }
    match manifest["kind"].as_str() {
        // The next run of a CronJob starts new pods anyway.
        Some("CronJob") => 0,
        Some("Job") => manifest["spec"]["parallelism"].as_u64().unwrap_or(1),
        _ => manifest["spec"]["replicas"].as_u64().unwrap_or(1),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_replicas_of_a_workload_are_its_pods() {
        let workload = |kind: &str, spec: Value| {
            let mut manifest = json!({"apiVersion": "apps/v1", "kind": kind, "spec": spec});
            manifest["spec"]["template"] = json!({"spec": {"containers": []}});
            pods(&manifest)
        };
        assert_eq!(workload("Deployment", json!({"replicas": 3})), 3);
        assert_eq!(workload("Deployment", json!({"replicas": 0})), 0);
        assert_eq!(workload("StatefulSet", json!({})), 1);
        assert_eq!(pods(&json!({"apiVersion": "v1", "kind": "Service", "spec": {"replicas": 3}})), 0);
    }
}
