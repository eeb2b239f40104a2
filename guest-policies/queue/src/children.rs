//! The children of a Queue, with the origins of their values.

use kaos_policy_sdk::plan::Child;
use kaos_policy_sdk::types::{EnvVar, Subject};
use kaos_policy_sdk::{Object, SubjectExt, env};
use serde_json::{Value, json};

use crate::config;
use crate::found::{Found, Login};
use crate::spec::{Settings, Spec};

/// The container of a server in its pod.
pub(crate) const CONTAINER: &str = "server";
/// The annotation of the pods with the digest of the Secret. A new password changes the annotation, so Kubernetes
/// restarts the pods one after another.
const LOGIN_DIGEST: &str = "example.com/login-digest";

/// Returns the labels that select the pods of a Queue.
pub(crate) fn labels(object: &Object) -> Value {
    json!({"app": "queue", "queue": object.name()})
}

/// Returns all children.
pub(crate) fn all(subject: &Subject, spec: &Spec, settings: &Settings, found: &Found, env: &[EnvVar]) -> Vec<Child> {
    let object = subject.object();
    let extra = found.extra.as_deref().unwrap_or_default();
    let config = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(&object),
        "data": {"nats.conf": config::text(subject, spec, settings, extra)},
    });
    vec![config.into(), service(&object), budget(&object), stateful_set(&object, spec, settings, found, env)]
}

fn metadata(object: &Object) -> Value {
    json!({"name": object.name(), "namespace": object.namespace(), "labels": labels(object)})
}

/// Returns the headless Service, which gives each server a name. The servers must find each other before they are
/// ready.
fn service(object: &Object) -> Child {
    let port = |name: &str, number: u16| json!({"name": name, "port": number, "targetPort": name, "protocol": "TCP"});
    Child::new(json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(object),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": true,
            "selector": labels(object),
            "ports": [port("client", 4222), port("cluster", 6222), port("monitor", 8222)],
        },
    }))
}

/// Returns the PodDisruptionBudget. A node drain stops only one server at a time, so that the majority keeps working.
fn budget(object: &Object) -> Child {
    Child::new(json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(object),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": labels(object)}},
    }))
}

fn stateful_set(object: &Object, spec: &Spec, settings: &Settings, found: &Found, env: &[EnvVar]) -> Child {
    let image = spec.image.as_ref().unwrap_or(&settings.image);
    let size = spec.storage.size.as_ref().unwrap_or(&settings.storage_size);
    let mut template = json!({
        "metadata": {"labels": labels(object)},
        "spec": {
            "securityContext": {"runAsNonRoot": true, "runAsUser": 1000, "fsGroup": 1000},
            "containers": [{
                "name": CONTAINER,
                "image": image,
                "args": ["--config", "/etc/nats/nats.conf"],
                "env": env::to_json(env, CONTAINER),
                "ports": [port("client", 4222), port("cluster", 6222), port("monitor", 8222)],
                "readinessProbe": {"httpGet": {"path": "/healthz?js-enabled-only=true", "port": "monitor"}},
                "livenessProbe": {"httpGet": {"path": "/healthz?js-server-only=true", "port": "monitor"}},
                "resources": settings.resources,
                "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
                "volumeMounts": [
                    {"name": "config", "mountPath": "/etc/nats"},
                    {"name": "data", "mountPath": "/data"},
                ],
            }],
            "volumes": [{"name": "config", "configMap": {"name": object.name()}}],
        },
    });
    if let Login::Known { digest, .. } = &found.login {
        template["metadata"]["annotations"] = json!({LOGIN_DIGEST: digest});
    }
    let mut volume = json!({
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}},
    });
    if let Some(class) = &spec.storage.class_name {
        volume["spec"]["storageClassName"] = json!(class);
    }
    let container = format!("spec.template.spec.containers[name=\"{CONTAINER}\"]");
    let from = |is_own: bool, own: &'static str, setting: &'static str| if is_own { own } else { setting };
    Child::new(json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": metadata(object),
        "spec": {
            "replicas": spec.replicas,
            "serviceName": object.name(),
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": labels(object)},
            "template": template,
            "volumeClaimTemplates": [volume],
        },
    }))
    .origin("spec.replicas", "spec.replicas")
    .origin(format!("{container}.image"), from(spec.image.is_some(), "spec.image", "settings.image"))
    .origin(format!("{container}.resources"), "settings.resources")
    .origin(
        "spec.volumeClaimTemplates[0].spec.resources.requests.storage",
        from(spec.storage.size.is_some(), "spec.storage.size", "settings.storageSize"),
    )
    .origin("spec.volumeClaimTemplates[0].spec.storageClassName", "spec.storage.className")
}

fn port(name: &str, number: u16) -> Value {
    json!({"name": name, "containerPort": number, "protocol": "TCP"})
}
