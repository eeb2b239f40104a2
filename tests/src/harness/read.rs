//! Reads objects and metrics pages.

use serde_json::{Map, Value};

/// Returns a condition of an object. Returns null if the object has no condition of this type.
pub fn condition(object: &Value, of: &str) -> Value {
    let mut conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions.rfind(|condition| condition["type"] == of).cloned().unwrap_or_default()
}

/// Returns whether a condition is true for the object's current generation.
pub fn is_true(object: &Value, of: &str) -> bool {
    let condition = condition(object, of);
    condition["status"] == "True" && condition["observedGeneration"] == object["metadata"]["generation"]
}

/// Returns the reason of a condition. Returns an empty text if the condition is missing.
pub fn reason(object: &Value, of: &str) -> String {
    text(&condition(object, of)["reason"]).to_owned()
}

/// Returns whether the status shows the object's current generation as ready.
pub fn is_ready(object: &Value) -> bool {
    is_true(object, "Ready") && object["status"]["ready"] == true
}

/// Returns the text of a JSON string. Returns an empty text for any other value.
pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Returns an object's name.
pub fn name(object: &Value) -> &str {
    text(&object["metadata"]["name"])
}

/// Returns an object's UID.
pub fn uid(object: &Value) -> &str {
    text(&object["metadata"]["uid"])
}

/// Returns an object's resource version.
pub fn version(object: &Value) -> &str {
    text(&object["metadata"]["resourceVersion"])
}

/// Returns an object's labels or annotations.
pub fn entries(object: &Value, field: &str) -> Map<String, Value> {
    object["metadata"][field].as_object().cloned().unwrap_or_default()
}

/// Returns an object's controller reference. Returns null if the object has no controller.
pub fn controller(object: &Value) -> Value {
    let mut owners = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    owners.rfind(|owner| owner["controller"] == true).cloned().unwrap_or_default()
}

/// Returns the finalizers of an object.
pub fn finalizers(object: &Value) -> Vec<&str> {
    object["metadata"]["finalizers"].as_array().into_iter().flatten().map(text).collect()
}

/// Returns the hash that the operator wrote on a Deployment's pod template.
pub fn hash(deployment: &Value) -> &str {
    text(&deployment["spec"]["template"]["metadata"]["annotations"]["kaos.tools/pod-spec-hash"])
}

/// Returns a variable of a Deployment's first container. Returns null if the variable is missing.
pub fn variable(deployment: &Value, name: &str) -> Value {
    let variables = deployment["spec"]["template"]["spec"]["containers"][0]["env"].as_array().into_iter().flatten();
    variables
        .filter(|variable| variable["name"] == name)
        .map(|variable| variable["value"].clone())
        .next_back()
        .unwrap_or_default()
}

/// Returns the sum of all samples of `metric` on a metrics page. Counts only samples with labels that contain every
/// text in `labels`.
pub fn counted(page: &str, metric: &str, labels: &[&str]) -> f64 {
    let lines = page.lines().filter(|line| !line.starts_with('#'));
    let fits = lines.filter(|line| {
        let name = line.split(['{', ' ']).next().unwrap_or_default();
        name == metric && labels.iter().all(|label| line.contains(label))
    });
    fits.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}
