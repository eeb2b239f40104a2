//! Pod fields that give more power than a pod has by itself: the user's own words, or granted.

use serde_json::Value;

use super::{Breach, Rule, UserPrivileges, plan::Rules};
use crate::{manifest::Privilege, pods};

/// A privileged field that a manifest has.
struct Raised<'a> {
    privilege: Privilege,
    path: String,
    /// The names that lead to the value within a pod spec or container.
    field: &'static [&'static str],
    value: &'a Value,
    /// The container that has it; none when the whole pod does.
    container: Option<&'a str>,
}

/// Switches of a pod.
const POD: [(Privilege, &[&str]); 3] = [
    (Privilege::HostNetwork, &["hostNetwork"]),
    (Privilege::HostPid, &["hostPID"]),
    (Privilege::HostIpc, &["hostIPC"]),
];
/// Switches of a container.
const CONTAINER: [(Privilege, &[&str]); 2] = [
    (Privilege::Privileged, &["securityContext", "privileged"]),
    (Privilege::AllowPrivilegeEscalation, &["securityContext", "allowPrivilegeEscalation"]),
];

pub(super) fn check(path: &str, manifest: &Value, rules: &Rules<'_>, breaches: &mut Vec<Breach>) {
    for (at, spec) in pods::specs(manifest) {
        let mut raised = of_pod(&at, spec);
        for (within, container) in pods::containers(spec) {
            raised.extend(of_container(&format!("{at}.{within}"), container));
        }
        for raised in raised {
            if rules.grants.privileges.contains(&raised.privilege) {
                continue;
            }
            if rules.user_privileges == UserPrivileges::Allowed && is_users_word(&raised, &rules.object["spec"]) {
                continue;
            }
            let name = serde_json::to_value(raised.privilege).ok();
            let name = name.as_ref().and_then(Value::as_str).unwrap_or_default();
            let message = format!("is neither in the object's own spec nor granted: grant privilege {name}");
            breaches.push(Breach { rule: Rule::NoPrivilege, path: format!("{path} {}", raised.path), message });
        }
    }
}

fn of_pod<'a>(at: &str, spec: &'a Value) -> Vec<Raised<'a>> {
    let mut raised = Vec::new();
    let mut raise = |privilege, field: &'static [&'static str], value: &'a Value| {
        raised.push(Raised { privilege, path: format!("{at}.{}", field.join(".")), field, value, container: None });
    };
    for (privilege, field) in POD {
        if is_on(at_field(spec, field)) {
            raise(privilege, field, at_field(spec, field));
        }
    }
    for field in [&["serviceAccountName"], &["serviceAccount"]] {
        let value = at_field(spec, field);
        if value.as_str().map_or(!value.is_null(), |name| !name.is_empty() && name != "default") {
            raise(Privilege::ServiceAccounts, field, value);
        }
    }
    for (privilege, field, value) in of_security_context(&spec["securityContext"]) {
        raise(privilege, field, value);
    }
    let sysctls = &spec["securityContext"]["sysctls"];
    if is_filled(sysctls) {
        raise(Privilege::Sysctls, &["securityContext", "sysctls"], sysctls);
    }
    for volume in spec["volumes"].as_array().into_iter().flatten() {
        if !volume["hostPath"].is_null() {
            raise(Privilege::HostPath, &["hostPath"], &volume["hostPath"]);
        }
    }
    raised
}

fn of_container<'a>(at: &str, container: &'a Value) -> Vec<Raised<'a>> {
    let name = container["name"].as_str().unwrap_or_default();
    let mut raised = Vec::new();
    let mut raise = |privilege, field: &'static [&'static str], value: &'a Value| {
        let path = format!("{at}.{}", field.join("."));
        raised.push(Raised { privilege, path, field, value, container: Some(name) });
    };
    let context = &container["securityContext"];
    for (privilege, field) in CONTAINER {
        if is_on(at_field(container, field)) {
            raise(privilege, field, at_field(container, field));
        }
    }
    for capability in list(&context["capabilities"]["add"]) {
        raise(Privilege::AddedCapabilities, &["securityContext", "capabilities", "add"], capability);
    }
    let mount = &context["procMount"];
    if !mount.is_null() && mount != "Default" {
        raise(Privilege::ProcMount, &["securityContext", "procMount"], mount);
    }
    for (privilege, field, value) in of_security_context(context) {
        raise(privilege, field, value);
    }
    for port in list(&container["ports"]) {
        if !port["hostPort"].is_null() && port["hostPort"] != 0 {
            raise(Privilege::HostPorts, &["hostPort"], &port["hostPort"]);
        }
    }
    raised
}

/// What the security contexts of pods and containers have in common.
fn of_security_context(context: &Value) -> Vec<(Privilege, &'static [&'static str], &Value)> {
    let mut raised: Vec<(_, &'static [&'static str], _)> = Vec::new();
    for (field, profile) in [
        (&["securityContext", "seccompProfile"], &context["seccompProfile"]),
        (&["securityContext", "appArmorProfile"], &context["appArmorProfile"]),
    ] {
        if profile["type"] == "Unconfined" {
            raised.push((Privilege::Unconfined, field, profile));
        }
    }
    if !context["seLinuxOptions"].is_null() {
        raised.push((Privilege::Unconfined, &["securityContext", "seLinuxOptions"], &context["seLinuxOptions"]));
    }
    let host_process = &context["windowsOptions"]["hostProcess"];
    if is_on(host_process) {
        raised.push((Privilege::HostProcess, &["securityContext", "windowsOptions", "hostProcess"], host_process));
    }
    raised
}

/// Whether the same field with the same value stands in the user's spec, for the same container or for none
/// in particular. What a user wrote for one container gives nothing to another.
fn is_users_word(raised: &Raised<'_>, spec: &Value) -> bool {
    says(spec, raised, None)
}

fn says(value: &Value, raised: &Raised<'_>, container: Option<&str>) -> bool {
    match value {
        Value::Object(fields) => {
            let here = at_field(value, raised.field);
            let same = match raised.privilege {
                Privilege::AddedCapabilities => list(here).any(|capability| capability == raised.value),
                _ => !here.is_null() && here == raised.value,
            };
            let fits = container.is_none() || container == raised.container || raised.container.is_none();
            (same && fits)
                || fields.iter().any(|(name, value)| {
                    let is_list = pods::CONTAINERS.contains(&name.as_str());
                    match value.as_array().filter(|_| is_list) {
                        Some(items) => items.iter().any(|item| says(item, raised, item["name"].as_str().or(container))),
                        None => says(value, raised, container),
                    }
                })
        }
        Value::Array(items) => items.iter().any(|item| says(item, raised, container)),
        _ => false,
    }
}

fn at_field<'a>(value: &'a Value, field: &[&str]) -> &'a Value {
    field.iter().fold(value, |value, name| &value[*name])
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// `false` and nothing are off; whatever else stands there is for the API server to judge, and counts as on.
fn is_on(value: &Value) -> bool {
    !value.is_null() && *value != false
}

fn is_filled(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        _ => true,
    }
}
