//! Validates containers: name, image, variables, ports, probes, resources and mounts.

use std::{cmp::Ordering, collections::BTreeSet};

use serde_json::{Value, json};

use super::names;
use crate::status::Cause;

/// Fields of a probe that must not be negative.
const PROBE: [&str; 5] =
    ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"];

const VARIABLE_TEXT: &str =
    "a valid environment variable name must consist only of printable ASCII characters other than '='";

/// Validates a container. `volumes` are the names of the pod's volumes.
pub(super) fn check(container: &Value, path: &str, volumes: &[&str]) -> Vec<Cause> {
    let mut causes = Vec::new();
    for field in ["name", "image"] {
        if container[field].as_str().is_none_or(str::is_empty) {
            causes.push(Cause::required(&format!("{path}.{field}"), ""));
        }
    }
    if let Some(name) = container["name"].as_str().filter(|name| !name.is_empty()) {
        causes.extend(names::label(name, &format!("{path}.name")));
    }
    causes.extend(ports(container, path));
    causes.extend(variables(container, path));
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        causes.extend(check_probe(&container[probe], &format!("{path}.{probe}"), probe != "readinessProbe"));
    }
    causes.extend(resources(&container["resources"], &format!("{path}.resources")));
    for (index, mount) in list(container, "volumeMounts").iter().enumerate() {
        let name = mount["name"].as_str().unwrap_or_default();
        if !volumes.contains(&name) {
            causes.push(Cause {
                reason: "FieldValueNotFound",
                message: format!("Not found: {name:?}"),
                field: format!("{path}.volumeMounts[{index}].name"),
            });
        }
    }
    causes
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().map_or(&[][..], Vec::as_slice)
}

fn ports(container: &Value, path: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    let mut seen = BTreeSet::new();
    for (index, port) in list(container, "ports").iter().enumerate() {
        let path = format!("{path}.ports[{index}]");
        if let Some(name) = port["name"].as_str().filter(|name| !name.is_empty()) {
            let wrong = names::port(name, &format!("{path}.name"));
            if wrong.is_empty() && !seen.insert(name) {
                causes.push(Cause::duplicate(&format!("{path}.name"), &port["name"]));
            }
            causes.extend(wrong);
        }
        match port["containerPort"].as_i64().unwrap_or_default() {
            0 => causes.push(Cause::required(&format!("{path}.containerPort"), "")),
            1..=65535 => {}
            number => {
                let text = "must be between 1 and 65535, inclusive";
                causes.push(Cause::invalid(&format!("{path}.containerPort"), &number.to_string(), text));
            }
        }
    }
    causes
}

fn variables(container: &Value, path: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    for (index, variable) in list(container, "env").iter().enumerate() {
        let path = format!("{path}.env[{index}]");
        let name = variable["name"].as_str().unwrap_or_default();
        if name.is_empty() {
            causes.push(Cause::required(&format!("{path}.name"), ""));
        } else if !name.chars().all(|c| matches!(c, ' '..='~') && c != '=') {
            causes.push(Cause::invalid(&format!("{path}.name"), &json!(name).to_string(), VARIABLE_TEXT));
        }
        if variable["value"].as_str().is_some_and(|value| !value.is_empty()) && variable["valueFrom"].is_object() {
            let text = "may not be specified when `value` is not empty";
            causes.push(Cause::invalid(&format!("{path}.valueFrom"), "\"\"", text));
        }
    }
    causes
}

/// Validates a probe. For a liveness or startup probe, the success threshold must be 1.
fn check_probe(probe: &Value, path: &str, is_about_living: bool) -> Vec<Cause> {
    let mut causes = Vec::new();
    for field in PROBE {
        if let Some(number) = probe[field].as_i64().filter(|number| *number < 0) {
            let text = "must be greater than or equal to 0";
            causes.push(Cause::invalid(&format!("{path}.{field}"), &number.to_string(), text));
        }
    }
    let successes = probe["successThreshold"].as_i64().unwrap_or(1);
    if is_about_living && successes != 1 {
        causes.push(Cause::invalid(&format!("{path}.successThreshold"), &successes.to_string(), "must be 1"));
    }
    causes
}

/// Refuses resource requests that are above the resource's limit. Extended resources have other rules, which this
/// cluster does not implement.
fn resources(resources: &Value, path: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    for (name, wanted) in resources["requests"].as_object().into_iter().flatten() {
        let Some((wanted, limit)) = wanted.as_str().zip(resources["limits"][name].as_str()) else { continue };
        if !name.contains('/') && kaos_amounts::compare(wanted, limit) == Some(Ordering::Greater) {
            let text = format!("must be less than or equal to {name} limit of {limit}");
            causes.push(Cause::invalid(&format!("{path}.requests"), &json!(wanted).to_string(), &text));
        }
    }
    causes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(mut container: Value) -> Vec<String> {
        for (field, value) in [("name", "a"), ("image", "b")] {
            if container[field].is_null() {
                container[field] = json!(value);
            }
        }
        check(&container, "c", &[]).into_iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect()
    }

    #[test]
    fn invalid_names_of_containers_variables_and_ports_are_refused() {
        assert!(wrong(json!({"name": "A_B"}))[0].starts_with("c.name: Invalid value: \"A_B\": a lowercase RFC 1123"));
        assert_eq!(wrong(json!({"name": "a".repeat(64)})).len(), 1);
        assert!(wrong(json!({"env": [{"name": "a.b-c d"}, {"name": "1"}]})).is_empty());
        let found = wrong(json!({"env": [{"name": "a=b"}, {"name": "ü"}, {"value": "x"}]}));
        assert_eq!(found[0], format!("c.env[0].name: Invalid value: \"a=b\": {VARIABLE_TEXT}"));
        assert_eq!(found[1], format!("c.env[1].name: Invalid value: \"ü\": {VARIABLE_TEXT}"));
        assert_eq!(found[2], "c.env[2].name: Required value");
        let port = |name: &str| wrong(json!({"ports": [{"name": name, "containerPort": 1}]}));
        assert!(port("http-1").is_empty());
        assert_eq!(
            port("a-name-of-16-let"),
            ["c.ports[0].name: Invalid value: \"a-name-of-16-let\": must be no more than 15 bytes"]
        );
        for name in ["Http", "123", "a--b", "-a", "a_b"] {
            assert_eq!(port(name).len(), 1, "{name}");
        }
        assert_eq!(wrong(json!({"ports": [{"containerPort": 65536}, {}]})).len(), 2);
    }

    #[test]
    fn probes_have_no_negative_numbers() {
        let probe = json!({"failureThreshold": -2, "periodSeconds": -1});
        assert_eq!(
            wrong(json!({"readinessProbe": probe})),
            [
                "c.readinessProbe.periodSeconds: Invalid value: -1: must be greater than or equal to 0",
                "c.readinessProbe.failureThreshold: Invalid value: -2: must be greater than or equal to 0"
            ]
        );
        assert_eq!(
            wrong(json!({"livenessProbe": {"successThreshold": 2}, "readinessProbe": {"successThreshold": 2}})),
            ["c.livenessProbe.successThreshold: Invalid value: 2: must be 1"]
        );
    }

    #[test]
    fn a_container_asks_for_no_more_than_its_limit() {
        let with =
            |requests: Value, limits: Value| wrong(json!({"resources": {"requests": requests, "limits": limits}}));
        assert!(with(json!({"cpu": "1", "memory": "1Gi"}), json!({"cpu": "1000m", "memory": "1024Mi"})).is_empty());
        assert_eq!(
            with(json!({"cpu": "2", "memory": "1Gi"}), json!({"cpu": "1500m"})),
            ["c.resources.requests: Invalid value: \"2\": must be less than or equal to cpu limit of 1500m"]
        );
    }
}
