//! Builds the manifests: Deployment, Service, the proxy's ConfigMap, HTTPRoute if routes are enabled, and the objects
//! that protect the ModelAPI.

use alloc::{borrow::ToOwned, string::String, vec::Vec};
use kaos_policy_sdk::plan::Child;
use kaos_policy_sdk::types::{EnvVar, Note, Plan, Refusal, Subject};
use kaos_policy_sdk::{SubjectExt, Violations, note, plan};
use kaos_workload::security::{Egress, Protection};
use kaos_workload::{Deployment, Exposure, Extra, PodDefaults, PodParts, Workload};
use serde_json::Value;

use crate::hosted;
use crate::providers::Config;
use crate::proxy::ProxyParts;
use crate::request::{Request, workload};
use crate::settings::{Server, Settings};
use crate::wanted::Wanted;

/// The reason code of the note on telemetry that the server does not support.
pub(crate) const TELEMETRY_UNSUPPORTED: &str = "TelemetryUnsupported";

/// The field with the name of the Secret in which the user stores the proxy's configuration.
const SECRET_NAME: &str = "spec.proxyConfig.configYaml.fromSecretKeyRef.name";

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

/// The parts of the pod and of the plan that depend on the object's mode.
#[derive(Default)]
struct ModeParts<'a> {
    command: Vec<String>,
    args: Vec<String>,
    volumes: Vec<Value>,
    mounts: Vec<Value>,
    init_containers: Vec<Value>,
    config_map: Option<Value>,
    /// The origins of values in the volumes.
    volume_origins: Vec<(&'a str, &'a str, &'a str)>,
}

fn planned(request: &Request, workload: &Workload<'_>, subject: &Subject, env: &[EnvVar]) -> Result<Plan, Refusal> {
    let mut notes = request.notes.clone();
    let mut violations = Violations::new();
    let parts = violations.collect(mode_parts(request, workload, &mut notes))?.unwrap_or_default();
    let deployment = violations.collect(deployment(request, workload, &parts, env, &mut notes))?;
    let exposure = exposure(request);
    let entrance = violations.collect(exposure.entrance(workload, subject, &mut notes))?;
    violations.into_result()?;
    let extra = extra(&request.settings);
    let mut manifests: Vec<Child> = parts.config_map.into_iter().map(|config| extra.child(config)).collect();
    let mut mapping = Vec::new();
    if let Some(deployment) = deployment {
        manifests.push(deployment.child);
        mapping = deployment.env;
    }
    manifests.push(exposure.service(workload));
    manifests.extend(entrance.unwrap_or_default());
    notes.extend(telemetry_note(request));
    let mut plan = plan::of(&manifests, mapping);
    plan.notes = notes;
    plan.finalizer = kaos_workload::finalizer(&request.settings.finalizer);
    Ok(plan)
}

fn mode_parts<'a>(
    request: &'a Request,
    workload: &Workload<'_>,
    notes: &mut Vec<Note>,
) -> Result<ModeParts<'a>, Refusal> {
    let settings = &request.settings;
    match &request.wanted {
        Wanted::Proxy(proxy) => {
            let (server, file, extra) = (&settings.proxy, &settings.proxy_config, extra(settings));
            // In the object, the field with the Secret's name is not called `secretName`, so the origin contains the
            // whole path.
            let name = (file.volume_name.as_str(), "secret.secretName", SECRET_NAME);
            let secret = matches!(proxy.config, Config::Secret(_)).then_some(name);
            let parts = ProxyParts::of(proxy, request.has_telemetry(), server, file, workload, &extra, notes)?;
            Ok(ModeParts {
                args: parts.args,
                volumes: vec![parts.volume],
                mounts: vec![parts.mount],
                config_map: parts.config_map,
                volume_origins: secret.into_iter().collect(),
                ..ModeParts::default()
            })
        }
        Wanted::Hosted { model, path } => {
            hosted::check_model(model, path)?;
            let (store, pull) = (&settings.model_store, &settings.model_pull);
            let own = request.object.str_at(&["spec", "container", "image"]);
            let image = [pull.image.as_str(), own.unwrap_or_default(), &settings.hosted.image];
            let image = image.into_iter().find(|image| !image.is_empty()).unwrap_or_default();
            let policy = settings.hosted.image_pull_policy;
            let init = pull.enabled.then(|| hosted::pull_container(pull, image, policy, model, &store.mount()));
            Ok(ModeParts {
                command: settings.hosted_run.command.clone(),
                args: settings.hosted_run.args.clone(),
                volumes: vec![store.volume()],
                mounts: vec![store.mount()],
                init_containers: init.into_iter().collect(),
                ..ModeParts::default()
            })
        }
    }
}

fn deployment(
    request: &Request,
    workload: &Workload<'_>,
    mode: &ModeParts<'_>,
    env: &[EnvVar],
    notes: &mut Vec<Note>,
) -> Result<Deployment, Refusal> {
    // Here, an empty list in the object removes the policy's list: the merge of `spec.container` ignores empty lists.
    let own = request.spec.container.as_ref();
    let or_emptied = |words: &[String], own: Option<&Vec<String>>| {
        if own.is_some_and(Vec::is_empty) { Vec::new() } else { words.to_vec() }
    };
    let of_the_server = matches!(request.wanted, Wanted::Hosted { .. });
    let older: &[&str] = &["spec", "serverConfig", "resources"];
    let container = kaos_workload::container(&request.object, of_the_server.then_some(older));
    let parts = PodParts {
        replicas: request.spec.replicas.map(i64::from),
        command: or_emptied(&mode.command, own.and_then(|own| own.command.as_ref())),
        args: or_emptied(&mode.args, own.and_then(|own| own.args.as_ref())),
        volume_mounts: mode.mounts.clone(),
        volumes: mode.volumes.clone(),
        volume_origins: mode.volume_origins.clone(),
        init_containers: mode.init_containers.clone(),
        container: container.as_ref(),
        pod_spec: request.object.at(&["spec", "podSpec"]),
        ..PodParts::default()
    };
    parts.deployment(workload, &defaults(request.server(), &request.settings), env, notes)
}

fn extra(settings: &Settings) -> Extra<'_> {
    Extra { labels: &settings.extra_labels, annotations: &settings.extra_annotations }
}

fn defaults<'a>((server, path): (&'a Server, &'a str), settings: &'a Settings) -> PodDefaults<'a> {
    PodDefaults {
        path,
        image: &server.image,
        image_pull_policy: server.image_pull_policy,
        container_port: server.container_port,
        port_name: &server.port_name,
        liveness_probe: &server.liveness_probe,
        readiness_probe: &server.readiness_probe,
        resources: &server.resources,
        security_context: &server.security_context,
        pod_security_context: &server.pod_security_context,
        automount_service_account_token: server.automount_service_account_token,
        extra: extra(settings),
    }
}

fn exposure(request: &Request) -> Exposure<'_> {
    let (server, path) = request.server();
    let security = &request.settings.security;
    Exposure {
        path,
        service_port: server.service_port,
        container_port: server.container_port,
        port_name: &server.port_name,
        service_type: server.service_type,
        gateway: &request.settings.gateway,
        timeout: request.object.str_at(&["spec", "gatewayRoute", "timeout"]),
        protection: Protection {
            settings: security,
            audience: &security.agents.audience,
            // Providers of models are outside of the cluster.
            network: security.network(Egress::Anywhere),
        },
        extra: extra(&request.settings),
    }
}

/// Returns a note if telemetry is enabled but cannot work, and `None` otherwise. A proxy needs an endpoint for
/// telemetry, and a hosted model does not support telemetry.
fn telemetry_note(request: &Request) -> Option<Note> {
    let telemetry = request.telemetry();
    match request.wanted {
        Wanted::Proxy(_) => telemetry.note(),
        // Add a note only if the object itself sets telemetry: the user of the object cannot change the cluster's
        // default.
        Wanted::Hosted { .. } => (request.spec.telemetry.is_some() && telemetry.enabled).then(|| {
            let message = "Telemetry enabled but Ollama does not support OTel natively: turn it off here, or observe \
                           the model through a ModelAPI of mode Proxy in front";
            note::at("spec.telemetry.enabled", note::warning(TELEMETRY_UNSUPPORTED, message))
        }),
    }
}
