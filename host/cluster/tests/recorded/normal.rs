//! Returns the method of each recorded request, and removes random differences between answers.
//!
//! The tests of the embedded cluster use this file. `tests/suites/manifests`, which records the answers again, uses it
//! too.

use serde_json::{Value, json};

/// Returns the method and the media type of a step.
pub(crate) fn content_type(verb: &str) -> (&'static str, &'static str) {
    match verb {
        "apply" => ("PATCH", "application/apply-patch+yaml"),
        "merge" => ("PATCH", "application/merge-patch+json"),
        "json" => ("PATCH", "application/json-patch+json"),
        "strategic" => ("PATCH", "application/strategic-merge-patch+json"),
        "get" => ("GET", ""),
        "post" => ("POST", "application/json"),
        "put" => ("PUT", "application/json"),
        "delete" => ("DELETE", "application/json"),
        other => panic!("unknown verb {other}"),
    }
}

/// Masks values that differ between runs.
fn mask(value: &mut Value) {
    const VARYING: [&str; 9] = [
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "deletionTimestamp",
        "time",
        "clusterIP",
        "lastTransitionTime",
        "lastUpdateTime",
        "continue",
    ];
    match value {
        Value::Object(object) => {
            for (name, value) in object.iter_mut() {
                if VARYING.contains(&name.as_str()) && value.is_string() {
                    *value = json!("*");
                } else if name == "clusterIPs" && value.is_array() {
                    *value = json!(["*"]);
                } else if name != "fieldsV1" {
                    mask(value);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(mask),
        _ => {}
    }
}

/// Returns an answer in comparable form. Masks or sorts everything that differs between two runs: UIDs, times,
/// revisions, addresses, and the order of a Go map.
pub(crate) fn normal(answer: &Value) -> Value {
    let mut answer = answer.clone();
    mask(&mut answer);
    let body = &mut answer["body"];
    if body["kind"] == "Status" {
        if let Some(causes) = body["details"]["causes"].as_array_mut() {
            causes.sort_by_key(Value::to_string);
            causes.dedup();
        }
        let message = body["message"].as_str().unwrap_or_default().to_owned();
        // The message repeats the causes in the order of a Go map.
        if let Some((head, _)) = message.split_once("is invalid: ") {
            body["message"] = json!(head);
        } else if let Some((head, fields)) = message.split_once("strict decoding error: ") {
            let mut fields: Vec<&str> = fields.split(", ").collect();
            fields.sort_unstable();
            body["message"] = json!(format!("{head}{}", fields.join(", ")));
        } else if let Some((head, tail)) = message.split_once("in record (") {
            body["message"] = json!(format!("{head}{}", tail.split_once(')').unwrap().1));
        }
    }
    answer
}

/// Removes the hash from names of `ReplicaSet`s, because implementations compute different hashes. Sorts the
/// conditions, because their order depends on the number of updates that a controller needs.
pub(crate) fn without_hash(value: &Value) -> Value {
    let hash = value["metadata"]["labels"]["pod-template-hash"].as_str().map(str::to_owned).or_else(|| {
        let mut conditions = value["status"]["conditions"].as_array()?.iter();
        let progress = conditions.find(|condition| condition["type"] == "Progressing")?;
        let message = progress["message"].as_str()?;
        Some(message.split('"').nth(1)?.trim_start_matches("web-").to_owned())
    });
    let text = value.to_string().replace(&hash.unwrap(), "<hash>");
    let owner = value["metadata"]["ownerReferences"][0]["uid"].as_str().unwrap_or("<owner>");
    let mut value: Value = serde_json::from_str(&text.replace(owner, "<owner>")).unwrap();
    mask(&mut value);
    if let Some(conditions) = value["status"]["conditions"].as_array_mut() {
        conditions.sort_by_key(|condition| condition["type"].to_string());
    }
    value
}
