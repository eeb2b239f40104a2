//! Rules of pods and pod templates.

use serde_json::{Value, json};

use super::container;
use crate::status::Cause;

/// Fills in the defaults of a pod.
pub(super) fn fill(object: &mut Value) {
    let Some(spec) = object.get_mut("spec").filter(|spec| spec.is_object()) else { return };
    fill_spec(spec);
    set(spec, "enableServiceLinks", json!(true));
    for container in containers_mut(spec) {
        let limits = container["resources"]["limits"].as_object().cloned().unwrap_or_default();
        for (name, limit) in limits {
            set_at(&mut container["resources"], "requests", &name, limit);
        }
    }
}

fn set_at(value: &mut Value, map: &str, name: &str, default: Value) {
    if value[map][name].is_null() {
        value[map][name] = default;
    }
}

/// Fills in the defaults of a pod's spec, also in templates.
pub(super) fn fill_spec(spec: &mut Value) {
    set(spec, "dnsPolicy", json!("ClusterFirst"));
    set(spec, "restartPolicy", json!("Always"));
    set(spec, "schedulerName", json!("default-scheduler"));
    set(spec, "securityContext", json!({}));
    set(spec, "terminationGracePeriodSeconds", json!(30));
    // The deprecated field `serviceAccount` mirrors `serviceAccountName`.
    match (spec["serviceAccountName"].clone(), spec["serviceAccount"].clone()) {
        (Value::Null, Value::Null) => {}
        (Value::Null, old) => spec["serviceAccountName"] = old,
        (new, _) => spec["serviceAccount"] = new,
    }
    let host_network = spec["hostNetwork"] == true;
    for container in containers_mut(spec) {
        fill_container(container, host_network);
    }
    for volume in spec.get_mut("volumes").and_then(Value::as_array_mut).into_iter().flatten() {
        fill_volume(volume);
    }
}

fn containers_mut(spec: &mut Value) -> impl Iterator<Item = &mut Value> {
    let lists = spec.as_object_mut().into_iter().flat_map(|spec| spec.iter_mut());
    lists
        .filter(|(name, _)| matches!(name.as_str(), "containers" | "initContainers"))
        .flat_map(|(_, list)| list.as_array_mut().into_iter().flatten())
        .filter(|container| container.is_object())
}

fn fill_container(container: &mut Value, host_network: bool) {
    set(container, "terminationMessagePath", json!("/dev/termination-log"));
    set(container, "terminationMessagePolicy", json!("File"));
    set(container, "resources", json!({}));
    let policy = pull_policy(container["image"].as_str().unwrap_or_default());
    set(container, "imagePullPolicy", json!(policy));
    for port in list_mut(container, "ports") {
        set(port, "protocol", json!("TCP"));
        if host_network {
            let number = port["containerPort"].clone();
            set(port, "hostPort", number);
        }
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get_mut(name).filter(|probe| probe.is_object()) {
            for (field, value) in
                [("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)]
            {
                set(probe, field, json!(value));
            }
            fill_http(probe);
            if let Some(grpc) = probe.get_mut("grpc").filter(|grpc| grpc.is_object()) {
                set(grpc, "service", json!(""));
            }
        }
    }
    for hook in ["postStart", "preStop"] {
        if container["lifecycle"][hook].is_object() {
            fill_http(&mut container["lifecycle"][hook]);
        }
    }
    for variable in list_mut(container, "env") {
        if variable["valueFrom"]["fieldRef"].is_object() {
            set(&mut variable["valueFrom"]["fieldRef"], "apiVersion", json!("v1"));
        }
        if variable["valueFrom"]["resourceFieldRef"].is_object() {
            set(&mut variable["valueFrom"]["resourceFieldRef"], "divisor", json!("0"));
        }
    }
}

fn fill_http(handler: &mut Value) {
    if let Some(get) = handler.get_mut("httpGet").filter(|get| get.is_object()) {
        set(get, "path", json!("/"));
        set(get, "scheme", json!("HTTP"));
    }
}

fn fill_volume(volume: &mut Value) {
    if volume.as_object().is_some_and(|volume| volume.len() == 1 && volume.contains_key("name")) {
        volume["emptyDir"] = json!({});
    }
    for source in ["configMap", "secret", "downwardAPI", "projected"] {
        if let Some(source) = volume.get_mut(source).filter(|source| source.is_object()) {
            set(source, "defaultMode", json!(420));
        }
    }
    if volume["image"].is_object() {
        let policy = pull_policy(volume["image"]["reference"].as_str().unwrap_or_default());
        set(&mut volume["image"], "pullPolicy", json!(policy));
    }
    if volume["hostPath"].is_object() {
        set(&mut volume["hostPath"], "type", json!(""));
    }
    if volume["projected"].is_object() {
        for source in list_mut(&mut volume["projected"], "sources") {
            if source["serviceAccountToken"].is_object() {
                set(&mut source["serviceAccountToken"], "expirationSeconds", json!(3600));
            }
            for item in list_mut(&mut source["downwardAPI"], "items") {
                if item["fieldRef"].is_object() {
                    set(&mut item["fieldRef"], "apiVersion", json!("v1"));
                }
            }
            if source["downwardAPI"].is_null() {
                source.as_object_mut().map(|source| source.remove("downwardAPI"));
            }
        }
    }
}

fn list_mut<'a>(value: &'a mut Value, name: &str) -> impl Iterator<Item = &'a mut Value> {
    let list = value.as_object_mut().and_then(|object| object.get_mut(name)).and_then(Value::as_array_mut);
    list.into_iter().flatten().filter(|item| item.is_object())
}

/// Sets a field that is missing or empty. The server treats an empty text like a missing text.
fn set(value: &mut Value, field: &str, default: Value) {
    if value[field].is_null() || value[field] == "" {
        value[field] = default;
    }
}

fn pull_policy(image: &str) -> &'static str {
    let name = image.rsplit('/').next().unwrap_or_default();
    let tag = name.split_once(':').map_or("latest", |(_, tag)| tag);
    if !name.contains('@') && tag == "latest" { "Always" } else { "IfNotPresent" }
}

/// Sets the fields that a real server and its admission plugins set in a new pod.
pub(super) fn prepare(object: &mut Value) {
    let spec = &mut object["spec"];
    set(spec, "serviceAccountName", json!("default"));
    let account = spec["serviceAccountName"].clone();
    spec["serviceAccount"] = account;
    set(spec, "preemptionPolicy", json!("PreemptLowerPriority"));
    set(spec, "priority", json!(0));
    set(spec, "tolerations", json!(["not-ready", "unreachable"].map(|state| json!({
        "key": format!("node.kubernetes.io/{state}"), "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}))));
    let qos = qos_class(spec);
    object["status"] = json!({"phase": "Pending", "qosClass": qos});
}

fn qos_class(spec: &Value) -> &'static str {
    let containers =
        || ["containers", "initContainers"].into_iter().flat_map(|list| spec[list].as_array().into_iter().flatten());
    let set = |container: &Value| {
        container["resources"]["limits"].is_object() || container["resources"]["requests"].is_object()
    };
    let bounded = |container: &Value| {
        let resources = &container["resources"];
        ["cpu", "memory"].iter().all(|name| {
            resources["limits"][name].is_string() && resources["limits"][name] == resources["requests"][name]
        })
    };
    if !containers().any(set) {
        "BestEffort"
    } else if containers().all(bounded) {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

/// Validates a pod's spec.
pub(super) fn check(spec: &Value, path: &str) -> Vec<Cause> {
    check_with_claims(spec, path, &[])
}

/// Like [`check`]. `claims` are the names of the volume claims that a `StatefulSet` adds to the volumes of its pods.
pub(super) fn check_with_claims(spec: &Value, path: &str, claims: &[&str]) -> Vec<Cause> {
    let mut causes = Vec::new();
    let list = |name: &str| spec[name].as_array().map_or(&[][..], Vec::as_slice);
    if list("containers").is_empty() {
        causes.push(Cause::required(&format!("{path}.containers"), ""));
    }
    let mut names = std::collections::BTreeSet::new();
    let own = list("volumes").iter().filter_map(|volume| volume["name"].as_str());
    let volumes: Vec<&str> = own.chain(claims.iter().copied()).collect();
    for group in ["containers", "initContainers"] {
        for (at, one) in list(group).iter().enumerate() {
            let path = format!("{path}.{group}[{at}]");
            causes.extend(container::check(one, &path, &volumes));
            if one["name"].is_string() && !names.insert(one["name"].to_string()) {
                causes.push(Cause::duplicate(&format!("{path}.name"), &one["name"]));
            }
        }
    }
    for (at, volume) in list("volumes").iter().enumerate() {
        for (source, field) in [("configMap", "name"), ("secret", "secretName"), ("persistentVolumeClaim", "claimName")]
        {
            if volume[source].is_object() && volume[source][field].as_str().is_none_or(str::is_empty) {
                causes.push(Cause::required(&format!("{path}.volumes[{at}].{source}.{field}"), ""));
            }
        }
    }
    causes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pull_policy_follows_the_tag() {
        for (image, policy) in
            [("a", "Always"), ("r:5000/a", "Always"), ("a:1", "IfNotPresent"), ("a@sha256:x", "IfNotPresent")]
        {
            assert_eq!(pull_policy(image), policy, "{image}");
        }
    }

    #[test]
    fn a_volume_without_the_name_of_its_source_is_refused() {
        let spec = json!({"containers": [{"name": "a", "image": "b"}], "volumes": [{"name": "v", "configMap": {}},
            {"name": "w", "secret": {"secretName": "s"}}, {"name": "x", "secret": {"name": "s"}}]});
        let fields: Vec<String> = check(&spec, "spec").into_iter().map(|cause| cause.field).collect();
        assert_eq!(fields, ["spec.volumes[0].configMap.name", "spec.volumes[2].secret.secretName"]);
    }
}
