//! Checks a container of a pod.

use std::collections::BTreeSet;

use super::{
    env,
    found::{Findings, shown},
    manifest_value::ManifestValue,
    mounts, probes, resources, security,
    volumes::Volumes,
};

/// The parts of a pod that the checks of its containers need.
pub(super) struct Pod<'p, 'a> {
    pub(super) spec: &'p ManifestValue<'a>,
    pub(super) volumes: Volumes<'a>,
    pub(super) claims: BTreeSet<&'a str>,
    /// The termination grace period in seconds.
    pub(super) grace: i64,
}

/// Checks an ordinary container, which runs until its pod ends.
pub(super) fn running(container: &ManifestValue<'_>, pod: &Pod<'_, '_>, found: &mut Findings) {
    common(container, pod, found);
    probes::lifecycle(container, pod.grace, found);
    probes::probes(container, pod.grace, found);
    restarts(container, found);
}

/// Checks an init container, which runs before the other containers. With the restart policy `Always`, an init
/// container keeps running together with the other containers.
pub(super) fn before(container: &ManifestValue<'_>, pod: &Pod<'_, '_>, found: &mut Findings) {
    common(container, pod, found);
    restarts(container, found);
    if container.text_of("restartPolicy") == "Always" {
        probes::lifecycle(container, pod.grace, found);
        probes::probes(container, pod.grace, found);
        return;
    }
    for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
        let field = container.field(field);
        if field.is_there() {
            found.add(&field, "is not allowed in an init container: remove it, or set restartPolicy: Always");
        }
    }
    for policy in container.list("resizePolicy").map(|item| item.field("restartPolicy")) {
        if policy.text() == "RestartContainer" {
            found.add(&policy, "is not allowed in an init container: write NotRequired");
        }
    }
}

fn common(container: &ManifestValue<'_>, pod: &Pod<'_, '_>, found: &mut Findings) {
    let name = container.field("name");
    if found.needs(&name, "the container's name") {
        found.label(&name);
    }
    found.needs(&container.field("image"), "the container's image");
    found.one_of(&container.field("imagePullPolicy"), &["Always", "IfNotPresent", "Never"]);
    found.one_of(&container.field("terminationMessagePolicy"), &["File", "FallbackToLogsOnError"]);
    ports(container, pod.spec.field("hostNetwork").value() == true, found);
    env::check(container, found);
    mounts::check(container, &pod.volumes, found);
    resources::of_container(&container.field("resources"), &pod.claims, found);
    let shares_users = pod.spec.field("hostUsers").value() != false;
    security::of_container(&container.field("securityContext"), shares_users, found);
    resizes(container, pod.spec, found);
}

fn ports(container: &ManifestValue<'_>, on_host: bool, found: &mut Findings) {
    let mut names = BTreeSet::new();
    found.differ(&container.field("ports"), &[("containerPort", ""), ("protocol", "TCP")]);
    for port in container.list("ports") {
        let (name, number, of_host) = (port.field("name"), port.field("containerPort"), port.field("hostPort"));
        if !name.text().is_empty() {
            found.port_name(&name, name.text());
            if !names.insert(name.text()) {
                found.add(&name, format!("two ports are called {}: choose another name", shown(&name)));
            }
        }
        found.port_number(&number);
        // Kubernetes treats 0 as unset.
        found.between(&of_host, 0, 65535);
        if on_host && of_host.number().is_some_and(|number| number != 0) && of_host.number() != number.number() {
            found.add(&of_host, "must equal containerPort, since the pod uses the network of its node");
        }
        found.one_of(&port.field("protocol"), &["TCP", "UDP", "SCTP"]);
    }
}

fn restarts(container: &ManifestValue<'_>, found: &mut Findings) {
    let (policy, rules) = (container.field("restartPolicy"), container.field("restartPolicyRules"));
    found.exactly_one_of(&policy, &["Always", "OnFailure", "Never"]);
    if rules.items().next().is_some() && !policy.is_there() {
        found.add(&policy, "is required together with restartPolicyRules");
    }
    for rule in rules.items() {
        found.exactly_one_of(&rule.field("action"), &["Restart", "RestartAllContainers"]);
        let codes = rule.field("exitCodes");
        if codes.is_there() {
            found.exactly_one_of(&codes.field("operator"), &["In", "NotIn"]);
        } else {
            found.add(&codes, "is required: the exit codes of the rule");
        }
    }
}

fn resizes(container: &ManifestValue<'_>, spec: &ManifestValue<'_>, found: &mut Findings) {
    let mut seen = BTreeSet::new();
    for item in container.list("resizePolicy") {
        let (resource, policy) = (item.field("resourceName"), item.field("restartPolicy"));
        if found.needs(&resource, "cpu or memory") {
            found.exactly_one_of(&resource, &["cpu", "memory"]);
            if !seen.insert(resource.text()) {
                found.add(&resource, format!("{} occurs twice: keep one", shown(&resource)));
            }
        }
        if found.needs(&policy, "NotRequired or RestartContainer") {
            found.exactly_one_of(&policy, &["NotRequired", "RestartContainer"]);
        }
        if spec.text_of("restartPolicy") == "Never" && policy.text() != "NotRequired" {
            found.add(&policy, "must be NotRequired in a pod with restartPolicy Never");
        }
    }
}
