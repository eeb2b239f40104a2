//! Builds the Deployment. Merges the object's `container` and then the object's `podSpec` into the policy's own pod.
//!
//! The SDK defines the merge rules. This module defines the policy's own pod, selects which fields of the object to
//! merge, and computes the mapping after all merges.

use crate::checks::check;
use crate::kind::{Extra, Workload};
use crate::lists::{CONTAINER, POD_SPEC, items, name_of};
use crate::older::OwnContainer;
use crate::settings::{Probe, PullPolicy, Raw};
use alloc::{borrow::ToOwned, string::String, vec::Vec};
use kaos_policy_sdk::plan::Child;
use kaos_policy_sdk::types::{EnvVar, Note, Refusal};
use kaos_policy_sdk::{Places, env, json, note, object, patch, quote, refusal};
use serde_json::{Map, Value};

/// The path of the pod spec in a Deployment.
const POD: &str = "spec.template.spec";

/// The settings for the pods of a kind.
#[derive(Debug)]
pub struct PodDefaults<'a> {
    /// The path of these settings: `settings`, or for example `settings.proxy`. The plan's origins contain this path.
    pub path: &'a str,
    /// Image of the main container.
    pub image: &'a str,
    /// The pull policy of the image.
    pub image_pull_policy: PullPolicy,
    /// Port that the main container listens on.
    pub container_port: u16,
    /// Name of this port.
    pub port_name: &'a str,
    /// Liveness probe.
    pub liveness_probe: &'a Probe,
    /// Readiness probe.
    pub readiness_probe: &'a Probe,
    /// Resources of the main container.
    pub resources: &'a Raw,
    /// Security context of the main container and of the init containers.
    pub security_context: &'a Raw,
    /// Security context of the pod.
    pub pod_security_context: &'a Raw,
    /// Whether pods get a token of their service account. `None` selects Kubernetes' default.
    pub automount_service_account_token: Option<bool>,
    /// Additional labels and annotations.
    pub extra: Extra<'a>,
}

/// The fields of an object that determine its Deployment, and the policy's additions to the pods.
#[derive(Debug, Default)]
pub struct PodParts<'a> {
    /// `spec.replicas`. `None` leaves the number to another field manager, such as an autoscaler.
    pub replicas: Option<i64>,
    /// Command of the main container. If the list is empty, the image's command runs.
    pub command: Vec<String>,
    /// Arguments of the main container.
    pub args: Vec<String>,
    /// Volume mounts of the main container.
    pub volume_mounts: Vec<Value>,
    /// Volumes of the pod.
    pub volumes: Vec<Value>,
    /// The origins of values in these volumes. Each entry has the name of a volume, a path in this volume, and the
    /// source of the value at this path.
    pub volume_origins: Vec<(&'a str, &'a str, &'a str)>,
    /// Init containers, without `env`. The mapping contains the variables of the init containers.
    pub init_containers: Vec<Value>,
    /// Service account of the pods.
    pub service_account: Option<&'a str>,
    /// `spec.container` of the object. The merge ignores the container's `env`, because the mapping already contains
    /// these variables.
    pub container: Option<&'a OwnContainer<'a>>,
    /// `spec.podSpec` as the user wrote it.
    pub pod_spec: Option<&'a Value>,
}

/// A Deployment, and the complete mapping of its variables.
#[derive(Debug)]
pub struct Deployment {
    /// The Deployment with the origins of its values.
    pub child: Child,
    /// The mapping after all merges, for `plan.env`.
    pub env: Vec<EnvVar>,
}

impl PodParts<'_> {
    /// Builds the Deployment of `workload` with the mapping `env`. Refuses the object if its `container` or `podSpec`
    /// is invalid.
    pub fn deployment(
        &self,
        workload: &Workload<'_>,
        defaults: &PodDefaults<'_>,
        env: &[EnvVar],
        notes: &mut Vec<Note>,
    ) -> Result<Deployment, Refusal> {
        let mut base = self.pod(workload, defaults)?;
        let planned = set_env(&mut base, env);
        let own = workload.kind.container;
        let mut pod = match self.pod_spec.filter(|patch| !patch.is_null()) {
            None => base,
            Some(patch) => {
                env::check_patch(patch, POD_SPEC)?;
                patch::pod_spec(base, patch, own).map_err(|error| error.under(POD_SPEC))?
            }
        };
        add_env(&mut pod, env, &planned, notes);
        one_value_a_name(&mut pod, notes);
        without_void_handlers(&mut pod);
        notes.extend(self.container.and_then(|own| repeated_env(&own.value)));
        check(&pod, self.pod_spec, own)?;
        let env = env::of_pod_spec(&pod, env, POD_SPEC)?;
        let template = defaults.extra.over(workload.selector());
        let mut spec = Map::new();
        if let Some(replicas) = self.replicas {
            spec.insert("replicas".into(), replicas.into());
        }
        spec.insert("selector".into(), object! { "matchLabels": workload.selector() });
        spec.insert("template".into(), object! { "metadata": template, "spec": pod });
        let manifest = object! {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": workload.metadata(&workload.child_name(), &defaults.extra),
            "spec": spec,
        };
        Ok(Deployment { child: self.with_origins(manifest, workload, defaults), env })
    }

    /// Declares the origins of the Deployment's values. Each field of the main container has the name of its setting,
    /// so one origin covers all these fields.
    fn with_origins(&self, manifest: Value, workload: &Workload<'_>, defaults: &PodDefaults<'_>) -> Child {
        let settings = defaults.path;
        let main = format!("{POD}.containers[name=\"{}\"]", workload.kind.container);
        let mut child = defaults.extra.child(manifest);
        child.declare("spec.replicas", "spec.replicas");
        defaults.extra.declare(&mut child, "spec.template.");
        child.declare(main.clone(), settings);
        if let Some(own) = self.container {
            if let Some(older) = &own.older {
                child.declare(format!("{main}.resources"), older.as_str());
            }
            child.declare(main, CONTAINER);
        }
        if !defaults.security_context.is_empty() {
            for container in self.init_containers.iter().filter_map(name_of) {
                let path = format!("{POD}.initContainers[name=\"{container}\"].securityContext");
                child.declare(path, format!("{settings}.securityContext"));
            }
        }
        if !defaults.pod_security_context.is_empty() {
            child.declare(format!("{POD}.securityContext"), format!("{settings}.podSecurityContext"));
        }
        for (volume, path, source) in &self.volume_origins {
            child.declare(format!("{POD}.volumes[name=\"{volume}\"].{path}"), *source);
        }
        if self.service_account.is_some() {
            child.declare(format!("{POD}.serviceAccountName"), "spec.serviceAccountName");
        }
        if self.pod_spec.is_some() {
            child.declare(POD, POD_SPEC);
        }
        child
    }

    /// Builds the policy's own pod. Merges the object's `container` into the main container.
    fn pod(&self, workload: &Workload<'_>, defaults: &PodDefaults<'_>) -> Result<Value, Refusal> {
        let port = object! { "name": defaults.port_name, "containerPort": defaults.container_port, "protocol": "TCP" };
        let mut main = object! {
            "name": workload.kind.container,
            "image": defaults.image,
            "imagePullPolicy": defaults.image_pull_policy.as_str(),
            "ports": vec![port],
        };
        let probes = [("livenessProbe", defaults.liveness_probe), ("readinessProbe", defaults.readiness_probe)];
        for (field, probe) in probes {
            put(&mut main, field, probe.manifest(defaults.container_port));
        }
        put(&mut main, "command", filled(&self.command));
        put(&mut main, "args", filled(&self.args));
        put(&mut main, "volumeMounts", filled(&self.volume_mounts));
        put(&mut main, "resources", object(defaults.resources));
        put(&mut main, "securityContext", object(defaults.security_context));
        if let Some(over) = self.container {
            main = patch::container(main, &container_patch(&over.value)?).map_err(|error| error.under(CONTAINER))?;
        }
        let mut pod = object! { "containers": vec![main] };
        let mut before = self.init_containers.clone();
        for container in &mut before {
            put(container, "securityContext", object(defaults.security_context));
        }
        put(&mut pod, "initContainers", filled(&before));
        put(&mut pod, "volumes", filled(&self.volumes));
        put(&mut pod, "serviceAccountName", self.service_account.map(Value::from));
        put(&mut pod, "securityContext", object(defaults.pod_security_context));
        put(&mut pod, "automountServiceAccountToken", defaults.automount_service_account_token.map(Value::from));
        Ok(pod)
    }
}

/// Selects the fields of `spec.container` that the policy merges into the main container. Treats an empty field as
/// absent, because a typed client omits empty fields.
fn container_patch(over: &Value) -> Result<Value, Refusal> {
    const FIELDS: [&str; 7] =
        ["image", "command", "args", "resources", "securityContext", "workingDir", "volumeMounts"];
    let Some(over) = over.as_object() else {
        return if over.is_null() {
            Ok(Value::Object(Map::new()))
        } else {
            Err(refusal::invalid(CONTAINER, "must be an object with image, command, args, env, resources and the like"))
        };
    };
    let mut kept = Map::new();
    for field in FIELDS {
        if let Some(value) = over.get(field).filter(|value| !is_void(value)) {
            kept.insert(field.to_owned(), value.clone());
        }
    }
    Ok(Value::Object(kept))
}

fn is_void(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}

fn put(target: &mut Value, field: &str, value: Option<Value>) {
    if let Some(value) = value {
        target[field] = value;
    }
}

fn filled<T: Clone + Into<Value>>(items: &[T]) -> Option<Value> {
    (!items.is_empty()).then(|| items.iter().cloned().map(Into::into).collect())
}

fn object(members: &Raw) -> Option<Value> {
    (!members.is_empty()).then(|| Value::Object(members.clone()))
}

/// Iterates over the containers and init containers of a pod.
fn containers(pod: &mut Value) -> impl Iterator<Item = &mut Map<String, Value>> {
    let lists = pod.as_object_mut().into_iter().flat_map(Map::iter_mut);
    lists
        .filter(|(field, _)| *field == "containers" || *field == "initContainers")
        .filter_map(|(_, list)| list.as_array_mut())
        .flatten()
        .filter_map(Value::as_object_mut)
}

fn name(container: &Map<String, Value>) -> &str {
    container.get("name").and_then(Value::as_str).unwrap_or_default()
}

/// Sets the variables of each container of the policy's own pod. Returns the names of these containers.
fn set_env(pod: &mut Value, vars: &[EnvVar]) -> Vec<String> {
    let mut planned = Vec::new();
    for container in containers(pod) {
        let list = env::to_json(vars, name(container));
        planned.push(name(container).to_owned());
        if !list.is_empty() {
            container.insert("env".into(), Value::Array(list));
        }
    }
    planned
}

/// Adds an overlay's variables to the containers that only `podSpec` defines. If `podSpec` also sets a variable, the
/// value in `podSpec` wins.
fn add_env(pod: &mut Value, vars: &[EnvVar], planned: &[String], notes: &mut Vec<Note>) {
    let mut others = Map::new();
    for var in vars.iter().filter(|var| !planned.contains(&var.container)) {
        others.insert(var.container.clone(), Value::Null);
    }
    for other in others.keys() {
        let Some(container) = containers(pod).find(|container| name(container) == other) else {
            let message =
                format!("the pod has no container `{other}`, so the plan leaves out the variables of this container");
            notes.push(note::warning("UnknownContainer", message));
            continue;
        };
        let list = container.entry("env").or_insert_with(|| Value::Array(Vec::new()));
        let Some(list) = list.as_array_mut() else { continue };
        for var in env::to_json(vars, other) {
            if !list.iter().any(|own| own.get("name") == var.get("name")) {
                list.push(var);
            }
        }
    }
}

/// Removes duplicate variables of each container. As in Kubernetes, the last value wins. Server-side apply would refuse
/// duplicates.
fn one_value_a_name(pod: &mut Value, notes: &mut Vec<Note>) {
    for container in containers(pod) {
        let Some(list) = container.get_mut("env").and_then(Value::as_array_mut) else { continue };
        if env::each_once(list) {
            let owner = name(container);
            let message = format!("container `{owner}` sets a variable more than once: the last value wins");
            notes.push(note::at(POD_SPEC, note::info("DuplicateEnv", message)));
        }
    }
}

/// Returns the note about the first variable that `spec.container.env` contains more than once, or `None` without such
/// a variable.
fn repeated_env(over: &Value) -> Option<Note> {
    let mut seen = Places::new();
    let mut names = items(over, "env").iter().filter_map(name_of);
    let name = names.find(|name| seen.insert(name, 0).is_some())?;
    let message = format!("`{name}` occurs more than once: the last value wins", name = quote::shown(name, 63));
    Some(note::at(format!("{CONTAINER}.env"), note::info("DuplicateEnv", message)))
}

/// Removes probes and hooks that a patch has made empty, because an API server refuses them.
fn without_void_handlers(pod: &mut Value) {
    let is_kept = |value: &Value| value.as_object().is_none_or(|members| !members.is_empty());
    for container in containers(pod) {
        json::keep(container, &|field, value| !field.ends_with("Probe") || is_kept(value));
        if let Some(hooks) = container.get_mut("lifecycle").and_then(Value::as_object_mut) {
            json::keep(hooks, &|_, hook| is_kept(hook));
        }
    }
}
