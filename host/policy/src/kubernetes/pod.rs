//! Checks the spec of a pod.

use std::{collections::BTreeSet, net::IpAddr};

use super::{
    container::{self, Pod},
    found::{Findings, shown},
    manifest_value::ManifestValue,
    resources, scheduling, security, volumes,
};
use crate::names::is_subdomain;

/// The default termination grace period in seconds.
const GRACE: i64 = 30;

/// Checks the pod spec of a template or of a pod.
pub(super) fn check(spec: &ManifestValue<'_>, is_template: bool, found: &mut Findings) {
    check_with_claims(spec, is_template, &[], found);
}

/// Like [`check`]. `claims` are the names of the volume claims that a `StatefulSet` adds to the volumes of its pods.
pub(super) fn check_with_claims<'a>(
    spec: &ManifestValue<'a>,
    is_template: bool,
    claims: &[&'a str],
    found: &mut Findings,
) {
    let mut volumes = volumes::check(spec, found);
    volumes.all.extend(claims);
    volumes.devices.extend(claims);
    let claims = spec.list("resourceClaims").map(|claim| claim.text_of("name")).collect();
    let grace = spec.field("terminationGracePeriodSeconds").number().unwrap_or(GRACE);
    containers(spec, &Pod { spec, volumes, claims, grace }, found);
    let ephemeral = spec.field("ephemeralContainers");
    if is_template && ephemeral.items().next().is_some() {
        found.add(&ephemeral, "is for running pods only: remove it");
    }
    found.one_of(&spec.field("restartPolicy"), &["Always", "OnFailure", "Never"]);
    found.exactly_one_of(&spec.field("preemptionPolicy"), &["PreemptLowerPriority", "Never"]);
    scheduling::check(spec, found);
    security::of_pod(spec, found);
    resources::of_pod(&spec.field("resources"), found);
    named(spec, found);
    network(spec, found);
    resources::overhead(&spec.field("overhead"), found);
    for gate in spec.list("readinessGates").map(|gate| gate.field("conditionType")) {
        found.key(&gate, gate.text());
    }
    found.differ(&spec.field("schedulingGates"), &[("name", "")]);
    for gate in spec.list("schedulingGates").map(|gate| gate.field("name")) {
        found.key(&gate, gate.text());
    }
    let deadline = spec.field("activeDeadlineSeconds");
    found.between(&deadline, 1, i64::from(i32::MAX));
    let system = spec.field("os").field("name");
    if spec.field("os").is_there() && found.needs(&system, "linux or windows") {
        found.exactly_one_of(&system, &["linux", "windows"]);
    }
}

fn containers(spec: &ManifestValue<'_>, pod: &Pod<'_, '_>, found: &mut Findings) {
    if spec.list("containers").next().is_none() {
        found.add(&spec.field("containers"), "is required: at least one container");
    }
    let mut names = BTreeSet::new();
    let mut host_ports = BTreeSet::new();
    for list in ["containers", "initContainers"] {
        for container in spec.list(list) {
            if list == "containers" {
                container::running(&container, pod, found);
            } else {
                container::before(&container, pod, found);
                // Init containers run one after another, so several of them can use the same host ports.
                host_ports.clear();
            }
            let name = container.field("name");
            if !name.text().is_empty() && !names.insert(name.text()) {
                found.add(&name, format!("two containers are called {}: choose another name", shown(&name)));
            }
            for port in container.list("ports") {
                let number = port.field("hostPort").number().unwrap_or_default();
                let protocol = Some(port.text_of("protocol")).filter(|text| !text.is_empty()).unwrap_or("TCP");
                if number != 0 && !host_ports.insert((protocol, port.text_of("hostIP"), number)) {
                    found.add(&port.field("hostPort"), format!("two ports use port {number} of the node"));
                }
            }
        }
    }
}

/// Checks the fields of a pod spec that name other objects.
fn named(spec: &ManifestValue<'_>, found: &mut Findings) {
    for field in ["serviceAccountName", "nodeName", "priorityClassName"] {
        found.name_if_any(&spec.field(field));
    }
    if spec.text_of("serviceAccountName").is_empty() {
        // `serviceAccount` is an older name of `serviceAccountName`.
        found.name_if_any(&spec.field("serviceAccount"));
    }
    let runtime = spec.field("runtimeClassName");
    if runtime.is_there() {
        found.name(&runtime);
    }
    for field in ["hostname", "subdomain"] {
        if !spec.text_of(field).is_empty() {
            found.label(&spec.field(field));
        }
    }
    found.differ(&spec.field("imagePullSecrets"), &[("name", "")]);
    found.differ(&spec.field("resourceClaims"), &[("name", "")]);
    for claim in spec.list("resourceClaims") {
        let name = claim.field("name");
        if found.needs(&name, "the claim's name") {
            found.label(&name);
        }
        let given = ["resourceClaimName", "resourceClaimTemplateName"].map(|field| claim.field(field).is_there());
        if given.iter().filter(|given| **given).count() != 1 {
            found.add(&claim, "must have one of resourceClaimName and resourceClaimTemplateName");
        }
    }
}

/// Checks host names, addresses and DNS settings.
fn network(spec: &ManifestValue<'_>, found: &mut Findings) {
    let is_on = |field| spec.field(field).value() == true;
    if is_on("shareProcessNamespace") && is_on("hostPID") {
        found.add(&spec.field("shareProcessNamespace"), "cannot be combined with hostPID: remove one of the two");
    }
    if spec.field("hostUsers").value() == false {
        for field in ["hostPID", "hostIPC", "hostNetwork"] {
            if is_on(field) && (field != "hostNetwork" || found.is_of_newest()) {
                found.add(&spec.field(field), "cannot be combined with hostUsers: false: remove one of the two");
            }
        }
    }
    let name = spec.field("hostnameOverride");
    if name.is_there() {
        found.name(&name);
        if name.text().len() > 64 {
            found.add(&name, "has more than 64 characters");
        }
        for field in ["setHostnameAsFQDN", "hostNetwork"] {
            if is_on(field) {
                found.add(&name, format!("cannot be combined with {field}: remove one of the two"));
            }
        }
    }
    found.differ(&spec.field("hostAliases"), &[("ip", "")]);
    for alias in spec.list("hostAliases") {
        address(&alias.field("ip"), found);
        alias.list("hostnames").for_each(|name| found.name(&name));
    }
    let (policy, config) = (spec.field("dnsPolicy"), spec.field("dnsConfig"));
    found.one_of(&policy, &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"]);
    let servers = config.field("nameservers");
    if policy.text() == "None" && servers.items().next().is_none() {
        found.add(&policy, "is None, which needs dnsConfig.nameservers: add an address there");
    }
    if servers.items().count() > 3 {
        found.add(&servers, "has more than 3 servers: keep 3");
    }
    servers.items().for_each(|server| address(&server, found));
    let searches = config.field("searches");
    let length: usize = searches.items().map(|search| search.text().len() + 1).sum();
    if searches.items().count() > 32 || length > 2049 {
        found.add(&searches, "has more than 32 domains, or more than 2048 characters: keep fewer");
    }
    for search in searches.items().filter(|search| search.text() != ".") {
        let text = search.text().strip_suffix('.').unwrap_or(search.text());
        // Names of DNS services can contain underscores.
        if !is_subdomain(&text.replace('_', "a")) {
            found.name(&search);
        }
    }
    for option in config.list("options") {
        found.needs(&option.field("name"), "the option's name");
    }
}

fn address(at: &ManifestValue<'_>, found: &mut Findings) {
    // Accept leading zeros in addresses, because older versions of Kubernetes accept them in these fields.
    let plain: Vec<&str> = at.text().split('.').map(|part| part.trim_start_matches('0')).collect();
    let plain: Vec<&str> = plain.into_iter().map(|part| if part.is_empty() { "0" } else { part }).collect();
    let is_one = at.text().parse::<IpAddr>().is_ok()
        || (!found.is_of_newest()
            && at.text().split('.').all(|part| !part.is_empty())
            && plain.join(".").parse::<IpAddr>().is_ok());
    if !is_one {
        found.add(at, format!("{} is not an IP address", shown(at)));
    }
}
