//! Rules of Jobs.

use serde_json::{Value, json};

use super::{names, pod};
use crate::{status::Cause, storage::meta};

/// Fills in the defaults.
pub(super) fn fill(object: &mut Value) {
    let Some(spec) = object.get_mut("spec").filter(|spec| spec.is_object()) else { return };
    // If both fields are missing, one pod must succeed. With `parallelism` alone, several pods run until one of the
    // pods has succeeded.
    if spec["completions"].is_null() && spec["parallelism"].is_null() {
        spec["completions"] = json!(1);
    }
    for (field, value) in [
        ("parallelism", json!(1)),
        ("backoffLimit", json!(6)),
        ("completionMode", json!("NonIndexed")),
        ("suspend", json!(false)),
        ("manualSelector", json!(false)),
        ("podReplacementPolicy", json!("TerminatingOrFailed")),
    ] {
        if spec[field].is_null() {
            spec[field] = value;
        }
    }
    if spec["template"]["spec"].is_object() {
        pod::fill_spec(&mut spec["template"]["spec"]);
    }
}

/// Sets a selector by UID in a new Job. Adds to the Job's template the labels that the selector matches.
pub(super) fn prepare(object: &mut Value) {
    object["status"] = json!({});
    if object["spec"]["manualSelector"] == true {
        return;
    }
    let (uid, name) = (meta(object, "uid").to_owned(), meta(object, "name").to_owned());
    let marks = [
        ("batch.kubernetes.io/controller-uid", &uid),
        ("batch.kubernetes.io/job-name", &name),
        ("controller-uid", &uid),
        ("job-name", &name),
    ];
    let template = &mut object["spec"]["template"]["metadata"]["labels"];
    for (label, value) in marks {
        template[label] = json!(value);
    }
    if object["metadata"]["labels"].is_null() {
        object["metadata"]["labels"] = object["spec"]["template"]["metadata"]["labels"].clone();
    }
    object["spec"]["selector"]["matchLabels"]["batch.kubernetes.io/controller-uid"] = json!(uid);
}

/// Validates a Job. `old` is the Job before an update.
pub(super) fn check(new: &Value, old: Option<&Value>) -> Vec<Cause> {
    let spec = &new["spec"];
    let mut causes = Vec::new();
    for field in ["parallelism", "completions", "backoffLimit", "ttlSecondsAfterFinished"] {
        let number = spec[field].as_i64().unwrap_or_default();
        if number < 0 {
            let path = format!("spec.{field}");
            causes.push(Cause::invalid(&path, &number.to_string(), "must be greater than or equal to 0"));
        }
    }
    causes.extend(names::labels(&spec["template"]["metadata"]["labels"], "spec.template.metadata.labels"));
    causes.extend(pod::check(&spec["template"]["spec"], "spec.template.spec"));
    let policy = &spec["template"]["spec"]["restartPolicy"];
    if policy != "OnFailure" && policy != "Never" {
        causes.push(Cause::required("spec.template.spec.restartPolicy", "valid values: \"OnFailure\", \"Never\""));
    }
    let Some(old) = old else { return causes };
    for field in ["completions", "selector", "template", "completionMode"] {
        if old["spec"][field] != spec[field] {
            let path = format!("spec.{field}");
            causes.push(Cause::invalid(&path, &spec[field].to_string(), "field is immutable"));
        }
    }
    causes
}
