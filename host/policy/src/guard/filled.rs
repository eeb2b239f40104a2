//! Lists the PersistentVolumeClaims in a manifest, and their data sources. A data source is a snapshot or another
//! PersistentVolumeClaim, and Kubernetes copies its content. So the guard treats the name of a data source like the
//! name of a volume that a pod mounts.

use serde_json::Value;

use crate::json::list;

/// The fields with which a PersistentVolumeClaim names its data source.
pub(super) const SOURCES: [&str; 2] = ["dataSource", "dataSourceRef"];

/// Returns the specs of a manifest's PersistentVolumeClaims, with their paths. The manifest may be a
/// PersistentVolumeClaim itself. Other manifests contain PersistentVolumeClaims in `volumeClaimTemplates`, as a
/// `StatefulSet` does, or in ephemeral volumes of pods. `pods` are the manifest's pod specs.
pub(super) fn claims<'a>(manifest: &'a Value, pods: &[(String, &'a Value)]) -> Vec<(String, &'a Value)> {
    let mut claims = Vec::new();
    if manifest["apiVersion"] == "v1" && manifest["kind"] == "PersistentVolumeClaim" {
        claims.push(("spec".to_owned(), &manifest["spec"]));
    }
    for (i, template) in list(&manifest["spec"]["volumeClaimTemplates"]).enumerate() {
        claims.push((format!("spec.volumeClaimTemplates[{i}].spec"), &template["spec"]));
    }
    for (at, pod) in pods {
        for (i, volume) in list(&pod["volumes"]).enumerate() {
            let spec = &volume["ephemeral"]["volumeClaimTemplate"]["spec"];
            if !spec.is_null() {
                claims.push((format!("{at}.volumes[{i}].ephemeral.volumeClaimTemplate.spec"), spec));
            }
        }
    }
    claims
}

/// Returns whether a data source is another PersistentVolumeClaim.
pub(super) fn is_claim(source: &Value) -> bool {
    source["kind"] == "PersistentVolumeClaim" && source["apiGroup"].as_str().unwrap_or_default().is_empty()
}
