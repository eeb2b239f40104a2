//! Removes from an object the identifiers and values that an API server adds. So a test can compare a rendered object
//! with an object from an API server.
//!
//! The functions remove every field that equals the server's default, even if a user wrote the field. So a test must
//! call the same function for both of the objects that it compares.

use serde_json::{Map, Value, json};

const HASH: &str = "kaos.tools/pod-spec-hash";

/// Removes defaults, and masks values that differ between runs.
pub fn stripped(mut object: Value) -> Value {
    metadata(&mut object);
    object.as_object_mut().map(|fields| fields.remove("status"));
    match object["kind"].as_str() {
        Some("Deployment") => deployment(&mut object["spec"]),
        Some("Service") => service(&mut object["spec"]),
        Some("HTTPRoute") => route(&mut object["spec"]),
        Some("PersistentVolumeClaim") => drop_defaults(&mut object["spec"], &json!({"volumeMode": "Filesystem"})),
        _ => {}
    }
    object
}

fn metadata(object: &mut Value) {
    let Some(metadata) = object["metadata"].as_object_mut() else { return };
    metadata.retain(|key, _| ["name", "namespace", "labels", "annotations", "ownerReferences"].contains(&key.as_str()));
    if let Some(owners) = metadata.get_mut("ownerReferences").and_then(Value::as_array_mut) {
        for owner in owners.iter_mut().filter_map(Value::as_object_mut) {
            owner.remove("uid");
        }
    }
}

fn deployment(spec: &mut Value) {
    drop_defaults(
        spec,
        &json!({
            "progressDeadlineSeconds": 600, "revisionHistoryLimit": 10, "replicas": 1,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
        }),
    );
    let template = &mut spec["template"];
    drop_defaults(&mut template["metadata"], &json!({"creationTimestamp": null}));
    if let Some(hash) = template["metadata"]["annotations"].get_mut(HASH) {
        *hash = json!("<hash>");
    }
    pod(&mut template["spec"]);
}

fn pod(spec: &mut Value) {
    drop_defaults(
        spec,
        &json!({
            "dnsPolicy": "ClusterFirst", "restartPolicy": "Always", "schedulerName": "default-scheduler",
            "securityContext": {}, "terminationGracePeriodSeconds": 30,
        }),
    );
    spec.as_object_mut().map(|fields| fields.remove("serviceAccount"));
    for list in ["containers", "initContainers"] {
        each(spec, list, container);
    }
    each(spec, "volumes", |volume| {
        for source in ["configMap", "secret", "downwardAPI", "projected"] {
            if let Some(source) = volume.get_mut(source) {
                drop_defaults(source, &json!({"defaultMode": 420}));
            }
        }
        if let Some(source) = volume.get_mut("hostPath") {
            drop_defaults(source, &json!({"type": ""}));
        }
    });
}

fn container(container: &mut Value) {
    let policy = pull_policy(container["image"].as_str().unwrap_or_default());
    drop_defaults(
        container,
        &json!({
            "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File", "resources": {},
            "imagePullPolicy": policy,
        }),
    );
    each(container, "ports", |port| drop_defaults(port, &json!({"protocol": "TCP"})));
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get_mut(probe) {
            drop_defaults(
                probe,
                &json!({"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}),
            );
            if let Some(get) = probe.get_mut("httpGet") {
                drop_defaults(get, &json!({"scheme": "HTTP"}));
            }
        }
    }
    each(container, "env", |variable| {
        if let Some(field) = variable.pointer_mut("/valueFrom/fieldRef") {
            drop_defaults(field, &json!({"apiVersion": "v1"}));
        }
    });
}

fn service(spec: &mut Value) {
    drop_defaults(
        spec,
        &json!({
            "internalTrafficPolicy": "Cluster", "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack",
            "sessionAffinity": "None", "type": "ClusterIP",
        }),
    );
    if let Some(fields) = spec.as_object_mut() {
        fields.remove("clusterIP");
        fields.remove("clusterIPs");
    }
    each(spec, "ports", |port| drop_defaults(port, &json!({"protocol": "TCP"})));
}

fn route(spec: &mut Value) {
    each(spec, "parentRefs", |parent| {
        drop_defaults(parent, &json!({"group": "gateway.networking.k8s.io", "kind": "Gateway"}));
    });
    each(spec, "rules", |rule| {
        each(rule, "backendRefs", |backend| {
            drop_defaults(backend, &json!({"group": "", "kind": "Service", "weight": 1}));
        });
    });
}

fn each(parent: &mut Value, list: &str, change: impl Fn(&mut Value)) {
    if let Some(items) = parent.get_mut(list).and_then(Value::as_array_mut) {
        items.iter_mut().for_each(change);
    }
}

fn drop_defaults(value: &mut Value, defaults: &Value) {
    let (Some(fields), Some(defaults)) = (value.as_object_mut(), defaults.as_object()) else { return };
    fields.retain(|key, value| defaults.get(key) != Some(value));
}

fn pull_policy(image: &str) -> &'static str {
    let name = image.rsplit('/').next().unwrap_or_default();
    let tag = if name.contains('@') { "pinned" } else { name.split_once(':').map_or("latest", |(_, tag)| tag) };
    if tag == "latest" { "Always" } else { "IfNotPresent" }
}

/// Returns only those fields of a status that the recordings also contain, in the format of the recordings.
pub fn status(status: &Value) -> Value {
    let mut out = Map::new();
    out.insert("phase".into(), status.get("phase").cloned().unwrap_or(json!("")));
    out.insert("ready".into(), status.get("ready").cloned().unwrap_or(json!(false)));
    for key in ["endpoint", "message", "linkedResources", "availableTools", "deployment"] {
        if let Some(value) = status.get(key) {
            out.insert(key.into(), value.clone());
        }
    }
    if let Some(conditions) =
        out.get_mut("deployment").and_then(|d| d.get_mut("conditions")).and_then(Value::as_array_mut)
    {
        for condition in conditions.iter_mut().filter_map(Value::as_object_mut) {
            condition.remove("lastTransitionTime");
            condition.remove("lastUpdateTime");
        }
        conditions.sort_by(|a, b| a["type"].as_str().cmp(&b["type"].as_str()));
    }
    Value::Object(out)
}
