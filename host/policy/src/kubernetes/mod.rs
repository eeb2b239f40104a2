//! Finds the values and fields of a manifest that an API server would refuse, without a request to an API server.
//! Checks the values in pods, workloads, Services and configuration, and the names of fields.
//!
//! The guard has already checked the manifest, so each value has the type of its field. The check reports only values
//! that every supported version of Kubernetes refuses. For example, the check accepts a value that only an older
//! version refuses. With [`Checks::Fields`], the check also reports a few values that only newer versions refuse. The
//! check cannot find values that an API server refuses because of quotas, webhooks or other objects of the cluster.

mod checks;
mod claim;
mod container;
mod data;
mod drivers;
mod env;
mod fields;
mod found;
mod manifest_value;
mod mounts;
mod origin;
mod pod;
mod probes;
mod quantity;
mod resources;
mod scheduling;
mod security;
mod service;
#[cfg(test)]
mod tests;
mod volumes;
mod workload;

use serde_json::Value;

pub use checks::Checks;
pub(crate) use fields::has_field;
pub use fields::{VERSION, is_known};
use found::{Finding, Findings};
use manifest_value::ManifestValue;
pub(crate) use origin::judge;

/// Returns all values and fields in a manifest that an API server would refuse.
pub(crate) fn check(manifest: &Value, checks: Checks) -> Vec<Finding> {
    let (mut found, at) = (Findings::for_these(checks), ManifestValue::of(manifest));
    if checks == Checks::Nothing {
        return found.into_vec();
    }
    let (version, kind) = (at.text_of("apiVersion"), at.text_of("kind"));
    if checks == Checks::Fields {
        fields::check(&at, version, kind, &mut found);
    }
    let spec = at.field("spec");
    match (version, kind) {
        ("apps/v1", "Deployment") => workload::deployment(&at, &mut found),
        ("apps/v1", "StatefulSet" | "DaemonSet") => workload::set(&at, &mut found),
        ("batch/v1", "Job") => workload::template(&spec.field("template"), &mut found),
        ("batch/v1", "CronJob") => {
            workload::template(&spec.field("jobTemplate").field("spec").field("template"), &mut found);
        }
        ("v1", "Pod") => pod::check(&spec, false, &mut found),
        ("v1", "PersistentVolumeClaim") => claim::spec(&spec, &mut found),
        ("v1", "Service") => service::check(&at, &mut found),
        ("v1", "ConfigMap") => data::config_map(&at, &mut found),
        ("v1", "Secret") => data::secret(&at, &mut found),
        _ => {}
    }
    found.into_vec()
}
