//! Rules of Services, and their addresses.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::names;
use crate::status::Cause;

/// Fills in the defaults of a Service.
pub(super) fn fill(object: &mut Value) {
    let Some(spec) = object.get_mut("spec").filter(|spec| spec.is_object()) else { return };
    let mut set = |field: &str, default: Value| {
        if spec[field].is_null() {
            spec[field] = default;
        }
    };
    set("type", json!("ClusterIP"));
    set("sessionAffinity", json!("None"));
    if spec["type"] != "ExternalName" && spec["internalTrafficPolicy"].is_null() {
        spec["internalTrafficPolicy"] = json!("Cluster");
    }
    if matches!(spec["type"].as_str(), Some("NodePort" | "LoadBalancer")) && spec["externalTrafficPolicy"].is_null() {
        spec["externalTrafficPolicy"] = json!("Cluster");
    }
    if spec["type"] == "LoadBalancer" && spec["allocateLoadBalancerNodePorts"].is_null() {
        spec["allocateLoadBalancerNodePorts"] = json!(true);
    }
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        if port["protocol"].is_null() {
            port["protocol"] = json!("TCP");
        }
        if port["targetPort"].is_null() || port["targetPort"] == "" || port["targetPort"] == 0 {
            let number = port["port"].clone();
            port["targetPort"] = number;
        }
    }
}

/// Validates a Service.
pub(super) fn check(new: &Value, old: Option<&Value>) -> Vec<Cause> {
    let spec = &new["spec"];
    let mut causes = Vec::new();
    let ports = spec["ports"].as_array().map_or(&[][..], Vec::as_slice);
    let headless = spec["clusterIP"] == "None" || spec["type"] == "ExternalName";
    if ports.is_empty() && !headless {
        causes.push(Cause::required("spec.ports", ""));
    }
    let mut names = BTreeSet::new();
    let mut numbers = BTreeSet::new();
    for (at, port) in ports.iter().enumerate() {
        let path = format!("spec.ports[{at}]");
        let number = port["port"].as_i64().unwrap_or_default();
        if !(1..=65535).contains(&number) {
            let message = "must be between 1 and 65535, inclusive";
            causes.push(Cause::invalid(&format!("{path}.port"), &number.to_string(), message));
        }
        if let Some(target) = port["targetPort"].as_i64().filter(|target| !(1..=65535).contains(target)) {
            let message = "must be between 1 and 65535, inclusive";
            causes.push(Cause::invalid(&format!("{path}.targetPort"), &target.to_string(), message));
        }
        if ports.len() > 1 && port["name"].as_str().is_none_or(str::is_empty) {
            causes.push(Cause::required(&format!("{path}.name"), ""));
        }
        if port["name"].is_string() && !names.insert(port["name"].to_string()) {
            causes.push(Cause::duplicate(&format!("{path}.name"), &port["name"]));
        }
        if let Some(name) = port["name"].as_str().filter(|name| !name.is_empty()) {
            causes.extend(names::label(name, &format!("{path}.name")));
        }
        if let Some(name) = port["targetPort"].as_str() {
            causes.extend(names::port(name, &format!("{path}.targetPort")));
        }
        if !numbers.insert((number, port["protocol"].to_string())) {
            causes.push(Cause::duplicate(&path, &json!({"port": number, "protocol": port["protocol"]})));
        }
    }
    if let Some(old) = old {
        let (before, after) = (&old["spec"]["clusterIP"], &spec["clusterIP"]);
        if before.is_string() && before != after && spec["type"] != "ExternalName" {
            let shown = after.as_str().map_or_else(|| "null".into(), |text| json!([text]).to_string());
            causes.push(Cause::invalid("spec.clusterIPs[0]", &shown, "may not change once set"));
        }
    }
    causes
}

/// Allocates the addresses of Services.
#[derive(Debug, Default)]
pub(crate) struct Addresses {
    next: u32,
}

impl Addresses {
    /// Sets the addresses of a Service. After an update, the Service keeps the addresses of `old`.
    pub(crate) fn allocate(&mut self, object: &mut Value, old: Option<&Value>) {
        let spec = &mut object["spec"];
        if spec["type"] == "ExternalName" {
            return;
        }
        for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            if spec[field].is_null()
                && let Some(kept) = old.map(|old| &old["spec"][field]).filter(|kept| !kept.is_null())
            {
                spec[field] = kept.clone();
            }
        }
        if spec["clusterIP"].as_str().is_none_or(str::is_empty) {
            self.next += 1;
            let number = self.next + 9;
            spec["clusterIP"] = json!(format!("10.96.{}.{}", number / 250 % 250, number % 250 + 1));
        }
        if spec["clusterIPs"].is_null() {
            spec["clusterIPs"] = json!([spec["clusterIP"]]);
        }
        if spec["ipFamilies"].is_null() {
            spec["ipFamilies"] = json!(["IPv4"]);
        }
        if spec["ipFamilyPolicy"].is_null() {
            spec["ipFamilyPolicy"] = json!("SingleStack");
        }
        if matches!(spec["type"].as_str(), Some("NodePort" | "LoadBalancer")) {
            for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
                if port["nodePort"].is_null() {
                    let same =
                        |before: &&Value| before["port"] == port["port"] && before["protocol"] == port["protocol"];
                    let kept = old
                        .and_then(|old| old["spec"]["ports"].as_array()?.iter().find(same))
                        .map(|port| port["nodePort"].clone());
                    self.next += 1;
                    port["nodePort"] =
                        kept.filter(|port| !port.is_null()).unwrap_or_else(|| json!(30000 + self.next % 2768));
                }
            }
        }
    }
}
