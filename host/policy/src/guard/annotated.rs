//! Finds annotations that raise privilege: annotations of pods, of ServiceAccounts, and of pod templates anywhere in a
//! manifest.

use serde_json::{Map, Value};

use super::power::Raised;
use crate::{
    manifest::Privilege,
    origins::{PathStep, steps},
    pods,
};

const APPARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";
const SECCOMP: [&str; 2] = ["seccomp.security.alpha.kubernetes.io/", "container.seccomp.security.alpha.kubernetes.io/"];
/// Annotations that give a pod a role at a cloud provider. A webhook or a program on the node reads these annotations.
const CLOUD_ROLES: [&str; 4] = [
    "iam.amazonaws.com/role",
    "eks.amazonaws.com/role-arn",
    "iam.gke.io/gcp-service-account",
    "azure.workload.identity/client-id",
];

/// Returns every annotation that raises privilege in a manifest.
pub(super) fn of_manifest(manifest: &Value) -> Vec<Raised<'_>> {
    let mut raised = Vec::new();
    for (at, template) in pods::templates(manifest) {
        raised.extend(annotations(template).filter_map(|(key, value)| {
            let is_profile = key.starts_with(APPARMOR) || SECCOMP.iter().any(|prefix| key.starts_with(prefix));
            let is_weak = |value: &str| value == "unconfined" || value.starts_with("localhost/");
            let privilege = if is_profile && value.as_str().is_some_and(is_weak) {
                Privilege::Unconfined
            } else if CLOUD_ROLES.contains(&key.as_str()) {
                Privilege::ServiceAccounts
            } else {
                return None;
            };
            Some(raise(privilege, &at, key, value))
        }));
    }
    if manifest["apiVersion"] == "v1" && manifest["kind"] == "ServiceAccount" {
        let roles = annotations(manifest).filter(|(key, _)| CLOUD_ROLES.contains(&key.as_str()));
        raised.extend(roles.map(|(key, value)| raise(Privilege::ServiceAccounts, "", key, value)));
    }
    raised
}

fn raise<'a>(privilege: Privilege, at: &str, key: &'a str, value: &'a Value) -> Raised<'a> {
    let names = ["metadata", "annotations", key].map(|name| PathStep::Name(name.to_owned()));
    let path = steps(at).unwrap_or_default().into_iter().chain(names).collect();
    Raised { privilege, path, field: (key, &[]), value, container: None }
}

fn annotations(of: &Value) -> impl Iterator<Item = (&String, &Value)> {
    of["metadata"]["annotations"].as_object().into_iter().flat_map(Map::iter)
}
