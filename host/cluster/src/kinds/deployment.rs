//! Deployments and `ReplicaSet`s.

use serde_json::{Value, json};

use super::{names, pod};
use crate::{status::Cause, storage::LabelSelector};

/// Fills in the defaults of a Deployment.
pub(super) fn fill(object: &mut Value) {
    let Some(spec) = object.get_mut("spec").filter(|spec| spec.is_object()) else { return };
    for (field, value) in [("replicas", 1), ("revisionHistoryLimit", 10), ("progressDeadlineSeconds", 600)] {
        if spec[field].is_null() {
            spec[field] = json!(value);
        }
    }
    if spec["strategy"]["type"].is_null() {
        spec["strategy"]["type"] = json!("RollingUpdate");
    }
    if spec["strategy"]["type"] == "RollingUpdate" {
        for field in ["maxSurge", "maxUnavailable"] {
            if spec["strategy"]["rollingUpdate"][field].is_null() {
                spec["strategy"]["rollingUpdate"][field] = json!("25%");
            }
        }
    }
    fill_template(spec);
}

/// Fills in the defaults of a `ReplicaSet`.
pub(super) fn fill_replica_set(object: &mut Value) {
    let Some(spec) = object.get_mut("spec").filter(|spec| spec.is_object()) else { return };
    if spec["replicas"].is_null() {
        spec["replicas"] = json!(1);
    }
    fill_template(spec);
}

fn fill_template(spec: &mut Value) {
    if spec["template"]["spec"].is_object() {
        pod::fill_spec(&mut spec["template"]["spec"]);
    }
}

/// What is wrong with a Deployment or `ReplicaSet`.
pub(super) fn check(new: &Value, old: Option<&Value>) -> Vec<Cause> {
    let spec = &new["spec"];
    let mut causes = Vec::new();
    let replicas = spec["replicas"].as_i64().unwrap_or_default();
    if replicas < 0 {
        causes.push(Cause::invalid("spec.replicas", &replicas.to_string(), "must be greater than or equal to 0"));
    }
    let selector = LabelSelector::of_object(&spec["selector"]);
    let labels = &spec["template"]["metadata"]["labels"];
    if spec["selector"].is_null() {
        causes.push(Cause::required("spec.selector", ""));
    } else if selector.is_empty() {
        let message = "empty selector is invalid for deployment";
        causes.push(Cause::invalid("spec.selector", &spec["selector"].to_string(), message));
    }
    if selector.is_empty() || !selector.matches_labels(labels) {
        let message = "`selector` does not match template `labels`";
        causes.push(Cause::invalid("spec.template.metadata.labels", &go_map(labels), message));
    }
    causes.extend(names::labels(labels, "spec.template.metadata.labels"));
    causes.extend(pod::check(&spec["template"]["spec"], "spec.template.spec"));
    let policy = &spec["template"]["spec"]["restartPolicy"];
    if policy.is_string() && policy != "Always" {
        causes.push(Cause::unsupported("spec.template.spec.restartPolicy", policy, &[json!("Always")]));
    }
    if old.is_some_and(|old| old["spec"]["selector"] != spec["selector"]) {
        causes.push(Cause::invalid("spec.selector", &go_selector(&spec["selector"]), "field is immutable"));
    }
    causes
}

fn go_map(labels: &Value) -> String {
    labels.to_string()
}

fn go_selector(selector: &Value) -> String {
    json!({"matchLabels": selector["matchLabels"]}).to_string()
}

/// A number of pods.
pub(crate) fn count(value: &Value) -> i64 {
    value.as_i64().unwrap_or_default()
}

/// A number of pods or a percentage of them; a share is rounded up or down.
pub(crate) fn share(value: &Value, of: i64, up: bool) -> i64 {
    match value {
        Value::String(text) => {
            let percent: i64 = text.trim_end_matches('%').parse().unwrap_or_default();
            if up { (percent * of + 99) / 100 } else { percent * of / 100 }
        }
        other => count(other),
    }
}
