//! Checks a Service.

use std::collections::BTreeSet;

use super::{
    found::{Findings, shown},
    manifest_value::ManifestValue,
};

/// Checks a Service.
pub(super) fn check(manifest: &ManifestValue<'_>, found: &mut Findings) {
    let spec = manifest.field("spec");
    let kind = spec.field("type");
    found.one_of(&kind, &["ClusterIP", "NodePort", "LoadBalancer", "ExternalName"]);
    found.one_of(&spec.field("sessionAffinity"), &["ClientIP", "None"]);
    found.labels(&spec.field("selector"));
    let ports: Vec<_> = spec.list("ports").collect();
    let needs_none = spec.text_of("clusterIP") == "None" || kind.text() == "ExternalName";
    if ports.is_empty() && !needs_none {
        found.add(&spec.field("ports"), "is required: at least one port");
    }
    if kind.text() == "ExternalName" {
        let name = spec.field("externalName");
        if found.needs(&name, "the external name of the Service") {
            found.name(&name);
        }
    }
    found.differ(&spec.field("ports"), &[("port", ""), ("protocol", "TCP")]);
    let mut names = BTreeSet::new();
    for port in &ports {
        let (name, number, target) = (port.field("name"), port.field("port"), port.field("targetPort"));
        if name.text().is_empty() {
            if ports.len() > 1 {
                found.needs(&name, "each port needs a name if the Service has several ports");
            }
        } else {
            found.label(&name);
            if !names.insert(name.text()) {
                found.add(&name, format!("two ports are called {}: choose another name", shown(&name)));
            }
        }
        found.port_number(&number);
        // If the target port is 0 or an empty text, Kubernetes uses the number of the port.
        if target.is_there() && target.number() != Some(0) && target.value() != "" {
            found.port(&target);
        }
        found.one_of(&port.field("protocol"), &["TCP", "UDP", "SCTP"]);
        found.between(&port.field("nodePort"), 0, 65535);
        let protocol = port.field("appProtocol");
        if protocol.is_there() {
            found.key(&protocol, protocol.text());
        }
    }
}
