//! Builds the manifests: Deployment, Service, HTTPRoute if routes are enabled, and the objects that protect the server.

use alloc::{borrow::ToOwned, string::String, vec::Vec};
use kaos_policy_sdk::types::{EnvVar, Note, Plan, Refusal, Subject};
use kaos_policy_sdk::{Object, SubjectExt, Violations, note, plan};
use kaos_workload::security::{Egress, Protection};
use kaos_workload::{Deployment, Exposure, Extra, PodDefaults, PodParts, Workload};
use serde_json::Value;

use crate::launch::Launch;
use crate::request::{KIND, Request, workload};
use crate::settings::Settings;

/// The reason code of the note on parameters that the container does not receive.
pub(crate) const PARAMS_UNUSED: &str = "ParamsUnused";
/// The reason code of the note on missing variables that the runtime requires.
pub(crate) const REQUIRED_ENV_MISSING: &str = "RequiredEnvMissing";

/// Builds the plan for `subject` with the mapping `env`.
pub(crate) fn translate(subject: &Subject, env: &[EnvVar]) -> Result<Plan, Refusal> {
    let object = subject.object();
    let workload = workload(&object, subject);
    let mut violations = workload.check_name(true);
    let planned = Request::of(subject).and_then(|request| planned(request, &workload, subject, env));
    let planned = violations.collect(planned)?;
    violations.into_result()?;
    planned.ok_or_else(|| Refusal::Unsupported("the object cannot be read".to_owned()))
}

fn planned(request: &Request, workload: &Workload<'_>, subject: &Subject, env: &[EnvVar]) -> Result<Plan, Refusal> {
    let mut notes: Vec<Note> = request.wanted.notes.iter().chain(&request.launch.notes).cloned().collect();
    let exposure = exposure(&request.settings, &request.object);
    let mut violations = Violations::new();
    let deployment = violations.collect(deployment(request, workload, env, &mut notes))?;
    let entrance = violations.collect(exposure.entrance(workload, subject, &mut notes))?;
    violations.into_result()?;
    let mut manifests = Vec::new();
    let mut mapping = Vec::new();
    if let Some(deployment) = deployment {
        notes.extend(missing_env(&request.launch, &deployment.child.manifest));
        manifests.push(deployment.child);
        mapping = deployment.env;
    }
    manifests.push(exposure.service(workload));
    manifests.extend(entrance.unwrap_or_default());
    notes.extend(request.telemetry().note());
    notes.extend(unused_params(request));
    let mut plan = plan::of(&manifests, mapping);
    plan.notes = notes;
    plan.finalizer = kaos_workload::finalizer(&request.settings.finalizer);
    Ok(plan)
}

fn deployment(
    request: &Request,
    workload: &Workload<'_>,
    env: &[EnvVar],
    notes: &mut Vec<Note>,
) -> Result<Deployment, Refusal> {
    let (settings, launch) = (&request.settings, &request.launch);
    let own = request.spec.container.as_ref();
    // An empty list in the object removes the registry's list. The merge of `spec.container` would skip an empty list.
    let emptied = |own: Option<&Vec<String>>| own.is_some_and(Vec::is_empty);
    let words = |words: &Option<Vec<String>>, own: Option<&Vec<String>>| {
        if emptied(own) { Vec::new() } else { words.clone().unwrap_or_default() }
    };
    let container = kaos_workload::container(&request.object, Some(&["spec", "resources"]));
    let parts = PodParts {
        replicas: request.spec.replicas.map(i64::from),
        command: words(&launch.command, own.and_then(|own| own.command.as_ref())),
        args: words(&launch.args, own.and_then(|own| own.args.as_ref())),
        service_account: request.spec.service_account_name.as_deref().filter(|name| !name.is_empty()),
        container: container.as_ref(),
        pod_spec: request.object.at(&["spec", "podSpec"]),
        ..PodParts::default()
    };
    parts.deployment(workload, &defaults(settings, launch), env, notes)
}

fn extra(settings: &Settings) -> Extra<'_> {
    Extra { labels: &settings.extra_labels, annotations: &settings.extra_annotations }
}

fn defaults<'a>(settings: &'a Settings, launch: &'a Launch) -> PodDefaults<'a> {
    PodDefaults {
        path: "settings",
        image: &launch.image,
        image_pull_policy: settings.image_pull_policy,
        container_port: settings.container_port,
        port_name: &settings.port_name,
        liveness_probe: &settings.liveness_probe,
        readiness_probe: &settings.readiness_probe,
        resources: &settings.resources,
        security_context: &settings.security_context,
        pod_security_context: &settings.pod_security_context,
        automount_service_account_token: settings.automount_service_account_token,
        extra: extra(settings),
    }
}

fn exposure<'a>(settings: &'a Settings, object: &'a Object) -> Exposure<'a> {
    Exposure {
        path: "settings",
        service_port: settings.service_port,
        container_port: settings.container_port,
        port_name: &settings.port_name,
        service_type: settings.service_type,
        gateway: &settings.gateway,
        timeout: object.str_at(&["spec", "gatewayRoute", "timeout"]),
        protection: Protection {
            settings: &settings.security,
            audience: &settings.security.agents.audience,
            network: settings.security.network(Egress::Inside),
        },
        extra: extra(settings),
    }
}

/// Returns a note if the object has parameters, and its runtime names no variable for parameters. Otherwise returns
/// `None`.
fn unused_params(request: &Request) -> Option<Note> {
    let path = request.wanted.params.as_ref()?.path();
    if request.launch.params_env_var.is_some() {
        return None;
    }
    let message = "this runtime names no variable for parameters, so the container does not get the parameters: set \
                   the container's variables in container.env, or set paramsEnvVar in the registry";
    Some(note::at(path, note::warning(PARAMS_UNUSED, message)))
}

/// Returns the note on variables that the runtime requires and the container lacks, or `None` without such variables. A
/// container with `envFrom` gets no note, because `envFrom` can supply the variables.
fn missing_env(launch: &Launch, deployment: &Value) -> Option<Note> {
    let containers = deployment.pointer("/spec/template/spec/containers")?.as_array()?;
    let named = |value: &Value, name: &str| value.get("name").and_then(Value::as_str) == Some(name);
    let main = containers.iter().find(|container| named(container, KIND.container))?;
    if main.get("envFrom").and_then(Value::as_array).is_some_and(|from| !from.is_empty()) {
        return None;
    }
    let env = main.get("env").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let missing: Vec<&str> = launch
        .required_env
        .iter()
        .map(String::as_str)
        .filter(|required| !env.iter().any(|variable| named(variable, required)))
        .collect();
    if missing.is_empty() {
        return None;
    }
    let variables = missing.join(", ");
    let message = format!("in container.env, the variables are missing that this runtime needs: {variables}");
    Some(note::at("spec.container.env", note::warning(REQUIRED_ENV_MISSING, message)))
}
