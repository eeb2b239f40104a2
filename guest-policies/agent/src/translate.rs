//! Builds the manifests of an Agent.

use alloc::vec::Vec;
use kaos_policy_sdk::plan;
use kaos_policy_sdk::types::{EnvVar, Plan, Refusal, Subject};
use kaos_workload::PodParts;

use crate::account;
use crate::harness;
use crate::ignored;
use crate::request::{self, Request, workload};

/// Builds the plan. Only an exposed Agent gets a Service, an HTTPRoute, and the objects that protect the Agent.
pub(crate) fn translate(subject: &Subject, env: &[EnvVar]) -> Result<Plan, Refusal> {
    let request = Request::of(subject)?;
    let workload = workload(&request.object, subject);
    let (spec, settings) = (&request.spec, &request.settings);
    let mut notes = request::notes(&request.object, spec, settings);
    notes.extend_from_slice(&request.linked.absent_peers);

    let account = account::name(&workload);
    let container = kaos_workload::container(&request.object, Some(&["spec", "resources"]));
    let mut parts = PodParts {
        replicas: spec.replicas.map(i64::from),
        container: container.as_ref(),
        pod_spec: spec.pod_spec.as_ref(),
        ..PodParts::default()
    };
    if spec.harness.as_ref().is_some_and(|harness| harness.workspace.is_some()) {
        harness::add_workspace(&mut parts, &settings.harness);
    }
    if settings.service_account.enabled {
        account::mount(&mut parts, &settings.service_account);
        parts.service_account = Some(&account);
    }
    let image = request.harness.as_ref().map_or(&settings.image, |harness| &harness.image);
    let deployment = parts.deployment(&workload, &settings.pod(image), env, &mut notes)?;
    notes.extend(ignored::notes(subject, &request.object, &deployment.child.manifest, &deployment.env));
    let mut manifests = Vec::new();
    if settings.service_account.enabled {
        manifests.push(settings.extra().child(account::manifest(&workload, &settings.extra())));
    }
    manifests.push(deployment.child);

    let exposure = request.exposure();
    if spec.exposed() {
        manifests.push(exposure.service(&workload));
        manifests.extend(exposure.entrance(&workload, subject, &mut notes)?);
    } else {
        exposure.check_timeout()?;
    }

    let mut plan = plan::of(&manifests, deployment.env);
    plan.notes = notes;
    if spec.wait_for_dependencies {
        plan.gates.clone_from(&request.linked.depends.unready);
        plan.gates.extend(request.memory.gate.clone());
    }
    plan.finalizer = kaos_workload::finalizer(&settings.finalizer);
    // While the plan lacks the store's address, the gates also hold back changes to running pods. Otherwise, the pods
    // would restart without the address, and restart again when the store returns.
    plan.gates_hold = spec.wait_for_dependencies && request.memory.lacks_address;
    Ok(plan)
}
