//! Checks the probes and hooks of a container.

use super::{
    found::{Findings, shown},
    manifest_value::ManifestValue,
};

/// Checks the probes of a container.
pub(super) fn probes(container: &ManifestValue<'_>, grace: i64, found: &mut Findings) {
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let probe = container.field(name);
        if !probe.is_there() {
            continue;
        }
        handler(&probe, &["exec", "httpGet", "tcpSocket", "grpc"], grace, found);
        for field in ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"]
        {
            found.at_least(&probe.field(field), 0);
        }
        let (successes, wait) = (probe.field("successThreshold"), probe.field("terminationGracePeriodSeconds"));
        if name == "readinessProbe" {
            if wait.is_there() {
                found.add(&wait, "is not allowed in a readiness probe: remove it");
            }
        } else {
            // Kubernetes replaces 0 by 1.
            if successes.number().is_some_and(|number| number > 1) {
                found.add(&successes, format!("{} must be 1: only a readiness probe may have more", shown(&successes)));
            }
            found.at_least(&wait, 1);
        }
    }
}

/// Checks the hooks of a container.
pub(super) fn lifecycle(container: &ManifestValue<'_>, grace: i64, found: &mut Findings) {
    let hooks = container.field("lifecycle");
    for name in ["postStart", "preStop"] {
        let hook = hooks.field(name);
        if hook.is_there() {
            handler(&hook, &["exec", "httpGet", "tcpSocket", "sleep"], grace, found);
        }
    }
}

/// Requires exactly one valid handler.
fn handler(at: &ManifestValue<'_>, ways: &[&'static str], grace: i64, found: &mut Findings) {
    let given: Vec<_> = ways.iter().map(|way| at.field(way)).filter(ManifestValue::is_there).collect();
    match given.len() {
        0 => found.add(at, format!("must have one of {}", ways.join(", "))),
        1 => {}
        _ => found.add(at, format!("has more than one of {}: keep one", ways.join(", "))),
    }
    let exec = at.field("exec");
    if exec.is_there() && exec.list("command").next().is_none() {
        found.add(&exec.field("command"), "is required: the program and its arguments");
    }
    let get = at.field("httpGet");
    if get.is_there() {
        port(&get, found);
        found.one_of(&get.field("scheme"), &["HTTP", "HTTPS"]);
        for header in get.list("httpHeaders") {
            let name = header.field("name");
            if name.text().is_empty() || !name.text().bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
                let rule = "write letters, digits and hyphens";
                found.add(&name, format!("{} is not the name of a header: {rule}", shown(&name)));
            }
        }
    }
    for way in ["tcpSocket", "grpc"] {
        if at.field(way).is_there() {
            port(&at.field(way), found);
        }
    }
    let seconds = at.field("sleep").field("seconds");
    if seconds.is_there() && ways.contains(&"sleep") {
        found.between(&seconds, 0, grace.max(0));
    }
}

fn port(way: &ManifestValue<'_>, found: &mut Findings) {
    let port = way.field("port");
    if port.is_there() {
        found.port(&port);
    } else {
        found.add(&port, "is required: the number or the name of a port");
    }
}
