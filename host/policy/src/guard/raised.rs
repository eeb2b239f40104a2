//! Finds fields that give more power than a pod or a Service has by default, anywhere in a manifest.

use serde_json::Value;

use super::{
    annotated, filled,
    power::{Container, Field, Raised},
};
use crate::{
    contract::ResourceType,
    json::list,
    manifest::Privilege,
    origins::{PathStep, steps},
    pods,
};

type RaisedFields = (Privilege, &'static str, &'static [&'static str]);

/// Boolean fields of a pod.
const POD: [RaisedFields; 3] = [
    (Privilege::HostNetwork, "hostNetwork", &[]),
    (Privilege::HostPid, "hostPID", &[]),
    (Privilege::HostIpc, "hostIPC", &[]),
];
/// Fields of a pod that raise privilege if they contain a name.
const POD_NAMES: [RaisedFields; 3] = [
    (Privilege::NodeName, "nodeName", &[]),
    (Privilege::PriorityClass, "priorityClassName", &[]),
    (Privilege::RuntimeClass, "runtimeClassName", &[]),
];
/// Boolean fields of a container.
const CONTAINER: [RaisedFields; 2] = [
    (Privilege::Privileged, "securityContext", &["privileged"]),
    (Privilege::AllowPrivilegeEscalation, "securityContext", &["allowPrivilegeEscalation"]),
];
/// Fields with a host name: the kubelet calls this host for a probe or a hook of a container.
const HOSTS: [RaisedFields; 10] = [
    (Privilege::ProbeHosts, "livenessProbe", &["httpGet", "host"]),
    (Privilege::ProbeHosts, "livenessProbe", &["tcpSocket", "host"]),
    (Privilege::ProbeHosts, "readinessProbe", &["httpGet", "host"]),
    (Privilege::ProbeHosts, "readinessProbe", &["tcpSocket", "host"]),
    (Privilege::ProbeHosts, "startupProbe", &["httpGet", "host"]),
    (Privilege::ProbeHosts, "startupProbe", &["tcpSocket", "host"]),
    (Privilege::ProbeHosts, "lifecycle", &["postStart", "httpGet", "host"]),
    (Privilege::ProbeHosts, "lifecycle", &["postStart", "tcpSocket", "host"]),
    (Privilege::ProbeHosts, "lifecycle", &["preStop", "httpGet", "host"]),
    (Privilege::ProbeHosts, "lifecycle", &["preStop", "tcpSocket", "host"]),
];
/// Volume types that raise no privilege. The list contains `secret` and `persistentVolumeClaim`, because the guard
/// checks the names of these objects elsewhere.
const VOLUMES: [&str; 8] =
    ["configMap", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected", "secret"];
/// Sources of projected volumes that expose no data of other users. The list contains `serviceAccountToken`, because
/// the token belongs to the pod's own ServiceAccount.
const PROJECTED: [&str; 4] = ["configMap", "downwardAPI", "secret", "serviceAccountToken"];
/// Types of Services that clients outside of the cluster can reach.
const SERVICES: [(&str, Privilege); 2] =
    [("LoadBalancer", Privilege::LoadBalancers), ("NodePort", Privilege::NodePorts)];

/// Returns every field and every annotation that raises privilege in a manifest. `specs` are the manifest's pod specs.
pub(super) fn of_manifest<'a>(manifest: &'a Value, specs: &[(String, &'a Value)]) -> Vec<Raised<'a>> {
    let mut raised = annotated::of_manifest(manifest);
    if ResourceType::of_object(manifest).is_service() {
        raised.extend(of_service(&manifest["spec"]));
    }
    for (at, spec) in filled::claims(manifest, specs) {
        raised.extend(of_claim(&at, spec));
    }
    for (at, spec) in specs {
        raised.extend(of_pod(at, spec));
        for (within, container) in pods::containers(spec) {
            let is_main = within == "containers[0]";
            raised.extend(of_container(&format!("{at}.{within}"), container, is_main));
        }
    }
    raised
}

fn of_service(spec: &Value) -> Vec<Raised<'_>> {
    let raise = |privilege, field, value| Raised {
        privilege,
        path: path("spec", (field, &[])),
        field: (field, &[]),
        value,
        container: None,
    };
    let mut raised = Vec::new();
    for field in ["externalIPs", "externalName"] {
        if is_filled(&spec[field]) {
            raised.push(raise(Privilege::ExternalTraffic, field, &spec[field]));
        }
    }
    let reached = SERVICES.iter().find(|(of, _)| spec["type"] == **of);
    raised.extend(reached.map(|(_, privilege)| raise(*privilege, "type", &spec["type"])));
    raised
}

/// Reports the field with which a PersistentVolumeClaim names a volume, because the volume may hold data of another
/// user.
fn of_claim<'a>(at: &str, spec: &'a Value) -> Option<Raised<'a>> {
    let (field, value): (Field<'_>, _) = (("volumeName", &[]), &spec["volumeName"]);
    let raised = Raised { privilege: Privilege::VolumeName, path: path(at, field), field, value, container: None };
    is_filled(value).then_some(raised)
}

fn of_pod<'a>(at: &str, spec: &'a Value) -> Vec<Raised<'a>> {
    let mut raised = Vec::new();
    let mut raise = |privilege, field: Field<'a>, value: &'a Value| {
        raised.push(Raised { privilege, path: path(at, field), field, value, container: None });
    };
    for (privilege, first, rest) in POD {
        let value = at_field(spec, (first, rest));
        if is_on(value) {
            raise(privilege, (first, rest), value);
        }
    }
    for (privilege, first, rest) in POD_NAMES {
        let value = at_field(spec, (first, rest));
        if is_filled(value) {
            raise(privilege, (first, rest), value);
        }
    }
    for first in ["serviceAccountName", "serviceAccount"] {
        let value = &spec[first];
        if is_filled(value) && value != "default" {
            raise(Privilege::ServiceAccounts, (first, &[]), value);
        }
    }
    for (privilege, field, value) in of_security_context(&spec["securityContext"]) {
        raise(privilege, field, value);
    }
    let sysctls = &spec["securityContext"]["sysctls"];
    if is_filled(sysctls) {
        raise(Privilege::Sysctls, ("securityContext", &["sysctls"]), sysctls);
    }
    if is_filled(&spec["resourceClaims"]) {
        raise(Privilege::ResourceClaims, ("resourceClaims", &[]), &spec["resourceClaims"]);
    }
    for (i, volume) in list(&spec["volumes"]).enumerate() {
        raised.extend(of_volume(&format!("{at}.volumes[{i}]"), volume));
    }
    raised
}

fn of_volume<'a>(at: &str, volume: &'a Value) -> Vec<Raised<'a>> {
    let mut raised = Vec::new();
    let mut raise = |privilege, at: &str, field: Field<'a>, value: &'a Value| {
        raised.push(Raised { privilege, path: path(at, field), field, value, container: None });
    };
    for (of, value) in beyond(volume, &VOLUMES) {
        let privilege = if of == "hostPath" { Privilege::HostPath } else { Privilege::OtherVolumes };
        raise(privilege, at, (of, &[]), value);
    }
    for (i, source) in list(&volume["projected"]["sources"]).enumerate() {
        let at = format!("{at}.projected.sources[{i}]");
        for (of, value) in beyond(source, &PROJECTED) {
            raise(Privilege::ProjectedSources, &at, (of, &[]), value);
        }
        let audience = &source["serviceAccountToken"]["audience"];
        if is_filled(audience) {
            // Leave the name `serviceAccountToken` out of the field, because the setting for this field has the path
            // `serviceAccount.audience`.
            raise(Privilege::TokenAudiences, &format!("{at}.serviceAccountToken"), ("audience", &[]), audience);
        }
    }
    raised
}

/// Returns the fields of a volume or of a projected source that are not in `types`.
fn beyond<'a>(of: &'a Value, types: &'static [&str]) -> impl Iterator<Item = (&'a str, &'a Value)> {
    let fields = of.as_object().into_iter().flatten().map(|(field, value)| (field.as_str(), value));
    fields.filter(|(field, value)| *field != "name" && !value.is_null() && !types.contains(field))
}

fn of_container<'a>(at: &str, container: &'a Value, is_main: bool) -> Vec<Raised<'a>> {
    let name = container["name"].as_str().unwrap_or_default();
    let mut raised = Vec::new();
    let mut raise_at = |privilege, at: &str, field: Field<'a>, value: &'a Value| {
        let container = Some(Container { name, is_main });
        raised.push(Raised { privilege, path: path(at, field), field, value, container });
    };
    let mut raise = |privilege, field: Field<'a>, value: &'a Value| raise_at(privilege, at, field, value);
    let context = &container["securityContext"];
    for (privilege, first, rest) in CONTAINER {
        let value = at_field(container, (first, rest));
        if is_on(value) {
            raise(privilege, (first, rest), value);
        }
    }
    let added = &context["capabilities"]["add"];
    if is_filled(added) {
        raise(Privilege::AddedCapabilities, ("securityContext", &["capabilities", "add"]), added);
    }
    let mount = &context["procMount"];
    if !mount.is_null() && mount != "Default" {
        raise(Privilege::ProcMount, ("securityContext", &["procMount"]), mount);
    }
    for (privilege, field, value) in of_security_context(context) {
        raise(privilege, field, value);
    }
    for (privilege, first, rest) in HOSTS {
        let value = at_field(container, (first, rest));
        if is_filled(value) {
            raise(privilege, (first, rest), value);
        }
    }
    for (i, port) in list(&container["ports"]).enumerate() {
        if !port["hostPort"].is_null() && port["hostPort"] != 0 {
            raise_at(Privilege::HostPorts, &format!("{at}.ports[{i}]"), ("hostPort", &[]), &port["hostPort"]);
        }
    }
    raised
}

/// Returns the privileged fields that security contexts of pods and of containers have in common.
fn of_security_context(context: &Value) -> Vec<(Privilege, Field<'static>, &Value)> {
    let mut raised: Vec<(_, Field<'static>, _)> = Vec::new();
    for profile in [&["seccompProfile", "type"], &["appArmorProfile", "type"]] {
        let value = &context[profile[0]][profile[1]];
        if value == "Unconfined" {
            raised.push((Privilege::Unconfined, ("securityContext", profile), value));
        }
    }
    for profile in [&["seccompProfile", "localhostProfile"], &["appArmorProfile", "localhostProfile"]] {
        let value = &context[profile[0]][profile[1]];
        if is_filled(value) {
            raised.push((Privilege::Unconfined, ("securityContext", profile), value));
        }
    }
    for account in [&["windowsOptions", "gmsaCredentialSpecName"], &["windowsOptions", "gmsaCredentialSpec"]] {
        let value = &context[account[0]][account[1]];
        if is_filled(value) {
            raised.push((Privilege::ServiceAccounts, ("securityContext", account), value));
        }
    }
    let options = &context["seLinuxOptions"];
    if is_filled(options) {
        raised.push((Privilege::Unconfined, ("securityContext", &["seLinuxOptions"]), options));
    }
    let host_process = &context["windowsOptions"]["hostProcess"];
    if is_on(host_process) {
        raised.push((Privilege::HostProcess, ("securityContext", &["windowsOptions", "hostProcess"]), host_process));
    }
    raised
}

/// Returns the value of a field in an object; null if the field is missing.
fn at_field<'a>(value: &'a Value, (first, rest): Field<'_>) -> &'a Value {
    rest.iter().fold(&value[first], |value, name| &value[*name])
}

fn path(at: &str, (first, rest): Field<'_>) -> Vec<PathStep> {
    let names = std::iter::once(first).chain(rest.iter().copied()).map(|name| PathStep::Name(name.to_owned()));
    steps(at).unwrap_or_default().into_iter().chain(names).collect()
}

/// Treats every value except `false` and null as on. If the value is not a boolean, the API server decides whether to
/// accept the value.
fn is_on(value: &Value) -> bool {
    !value.is_null() && *value != false
}

fn is_filled(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => fields.values().any(|value| !value.is_null()),
        Value::Bool(_) | Value::Number(_) => true,
    }
}
