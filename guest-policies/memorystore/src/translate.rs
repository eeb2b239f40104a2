//! Builds the manifests of a store.

use alloc::vec::Vec;
use kaos_crds::memorystore::StorageType;
use kaos_policy_sdk::plan::Child;
use kaos_policy_sdk::types::{EnvVar, Plan, Refusal, Subject};
use kaos_policy_sdk::{object, plan};
use kaos_workload::{PodParts, Workload};

use crate::request::{Request, workload};
use crate::settings::Strategy;

/// Builds the plan: volume claim, Deployment, Service, PodDisruptionBudget, HTTPRoute, and the protecting objects.
pub(crate) fn translate(subject: &Subject, env: &[EnvVar]) -> Result<Plan, Refusal> {
    let request = Request::of(subject)?;
    let workload = workload(&request.object, subject);
    let (spec, settings, claims) = (&request.spec, &request.settings, &request.claims);
    let mut notes = request.served.notes.clone();
    notes.extend_from_slice(&claims.notes);
    notes.extend(request.telemetry().note());

    let container = kaos_workload::container(&request.object, None);
    let volume = &settings.volume;
    let mut parts =
        PodParts { replicas: Some(spec.pods().into()), container: container.as_ref(), ..PodParts::default() };
    if let Some(claim) = &claims.mounted {
        let source = object! { "claimName": claim.as_str() };
        parts.volumes.push(object! { "name": volume.name.as_str(), "persistentVolumeClaim": source });
        parts.volume_mounts.push(object! { "name": volume.name.as_str(), "mountPath": volume.mount_path.as_str() });
        parts.volume_origins.push((volume.name.as_str(), "persistentVolumeClaim.claimName", "settings.volume.claim"));
    }
    let mut deployment = parts.deployment(&workload, &settings.pod(), env, &mut notes)?;
    // With `RollingUpdate`, the old and the new pod would overlap: on one node, both write into the same database. On
    // two nodes, the new pod cannot mount the volume.
    if spec.storage.type_ == StorageType::Local && volume.strategy == Strategy::Recreate {
        deployment.child.manifest["spec"]["strategy"] = object! { "type": "Recreate" };
    }

    let exposure = request.exposure();
    let mut manifests: Vec<Child> = claims.child(&workload, &settings.extra()).into_iter().collect();
    manifests.push(deployment.child);
    manifests.push(exposure.service(&workload));
    manifests.extend(budget(request, &workload));
    manifests.extend(exposure.entrance(&workload, subject, &mut notes)?);

    let mut plan = plan::of(&manifests, deployment.env);
    plan.notes = notes;
    plan.gates.clone_from(&request.served.depends.unready);
    plan.finalizer = kaos_workload::finalizer(&settings.finalizer);
    plan.kept = claims.kept();
    Ok(plan)
}

/// Builds the PodDisruptionBudget of a store with more than one pod.
fn budget(request: &Request, workload: &Workload<'_>) -> Option<Child> {
    let least = request.settings.min_available;
    if request.spec.pods() < 2 || least == 0 {
        return None;
    }
    let budget = object! {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": workload.metadata(&workload.child_name(), &request.settings.extra()),
        "spec": object! { "minAvailable": least, "selector": object! { "matchLabels": workload.selector() } },
    };
    Some(request.settings.extra().child(budget).origin("spec.minAvailable", "settings.minAvailable"))
}
