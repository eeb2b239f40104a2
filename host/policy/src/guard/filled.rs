//! The claims of a manifest, and what they are filled from. A claim that names another one, or a snapshot, is a copy of what
//! that holds, so that naming it is as good as mounting it.

use serde_json::Value;

use crate::json::list;

/// The fields of a claim that say it.
pub(super) const SOURCES: [&str; 2] = ["dataSource", "dataSourceRef"];

/// The claims of a manifest, with the paths of their specs: a claim itself, one that is made for each pod of a set, or for a
/// volume of a pod. `pods` are the pod specs of the manifest.
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

/// Whether what a claim is filled from is another claim.
pub(super) fn is_claim(source: &Value) -> bool {
    source["kind"] == "PersistentVolumeClaim" && source["apiGroup"].as_str().unwrap_or_default().is_empty()
}
