//! Checks that values in manifests of Kubernetes' own kinds have the types of their fields. Without this check, the API
//! server would reject, for example, an object in place of a list. The API server's error would not name the field that
//! the user wrote.
//!
//! Checks only types. Accepts unknown fields, because the cluster may be newer than the types in this program. The API
//! server checks the meaning of values.

use std::fmt;

use k8s_openapi::api::{apps, autoscaling, batch, core, discovery, networking, policy};
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::Segment;

use crate::origins::PathStep;

/// The maximum number of misfits that the guard reports for one manifest.
const TOLD: usize = 10;
/// The maximum length of a parser's own error message, in characters.
const REASON: usize = 200;

/// A value whose type differs from the type of its field in the manifest.
pub(super) struct Misfit<'a> {
    /// The path of the value: the names and indices from the manifest's root to the value.
    pub(super) path: Vec<PathStep>,
    /// The value in the manifest.
    pub(super) value: &'a Value,
    /// The types of the field and of the value, as a text.
    pub(super) message: String,
}

/// The result of parsing a manifest as a type. The error contains the path of the value that does not fit.
type Parsed = Result<(), serde_path_to_error::Error<serde_json::Error>>;

/// Returns every value of a manifest that has another type than its field. Returns no values for kinds that are not
/// Kubernetes' own.
pub(super) fn misfits(manifest: &Value) -> Vec<Misfit<'_>> {
    let Some(parse) = parser(manifest) else { return Vec::new() };
    let mut misfits = Vec::new();
    let Err(mut error) = parse(manifest) else { return misfits };
    let mut rest = manifest.clone();
    while misfits.len() < TOLD {
        let path = steps(error.path());
        let Some(value) = at(manifest, &path) else { break };
        misfits.push(Misfit { message: message(&error, value), value, path: path.clone() });
        // Remove the value, so that the parser finds the next misfit. Stop at a list item: without the item, the later
        // items would have other indices.
        let Some((PathStep::Name(name), above)) = path.split_last() else { break };
        let parent = at_mut(&mut rest, above).and_then(Value::as_object_mut);
        if parent.and_then(|parent| parent.remove(name)).is_none() {
            break;
        }
        match parse(&rest) {
            Err(next) => error = next,
            Ok(()) => break,
        }
    }
    misfits
}

fn parser(manifest: &Value) -> Option<fn(&Value) -> Parsed> {
    Some(match (manifest["apiVersion"].as_str()?, manifest["kind"].as_str()?) {
        ("v1", "ConfigMap") => parse::<core::v1::ConfigMap>,
        ("v1", "PersistentVolumeClaim") => parse::<core::v1::PersistentVolumeClaim>,
        ("v1", "Pod") => parse::<core::v1::Pod>,
        ("v1", "Secret") => parse::<core::v1::Secret>,
        ("v1", "Service") => parse::<core::v1::Service>,
        ("v1", "ServiceAccount") => parse::<core::v1::ServiceAccount>,
        ("apps/v1", "DaemonSet") => parse::<apps::v1::DaemonSet>,
        ("apps/v1", "Deployment") => parse::<apps::v1::Deployment>,
        ("apps/v1", "StatefulSet") => parse::<apps::v1::StatefulSet>,
        ("autoscaling/v2", "HorizontalPodAutoscaler") => parse::<autoscaling::v2::HorizontalPodAutoscaler>,
        ("batch/v1", "CronJob") => parse::<batch::v1::CronJob>,
        ("batch/v1", "Job") => parse::<batch::v1::Job>,
        ("discovery.k8s.io/v1", "EndpointSlice") => parse::<discovery::v1::EndpointSlice>,
        ("networking.k8s.io/v1", "Ingress") => parse::<networking::v1::Ingress>,
        ("networking.k8s.io/v1", "NetworkPolicy") => parse::<networking::v1::NetworkPolicy>,
        ("policy/v1", "PodDisruptionBudget") => parse::<policy::v1::PodDisruptionBudget>,
        _ => return None,
    })
}

fn parse<T: DeserializeOwned>(manifest: &Value) -> Parsed {
    serde_path_to_error::deserialize::<_, T>(manifest).map(drop)
}

fn steps(path: &serde_path_to_error::Path) -> Vec<PathStep> {
    let step = |segment: &Segment| match segment {
        Segment::Seq { index } => Some(PathStep::Index(*index)),
        Segment::Map { key } => Some(PathStep::Name(key.clone())),
        // Stop at an unknown step, and report the whole value above it.
        Segment::Enum { .. } | Segment::Unknown => None,
    };
    path.iter().map_while(step).collect()
}

fn at<'a>(value: &'a Value, path: &[PathStep]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, step| step.of(value))
}

fn at_mut<'a>(value: &'a mut Value, path: &[PathStep]) -> Option<&'a mut Value> {
    path.iter().try_fold(value, |value, step| match step {
        PathStep::Name(name) => value.get_mut(name),
        PathStep::Index(index) => value.get_mut(index),
    })
}

/// Returns a message with the type that the field accepts and the type of the value. The message omits the value, which
/// may be long or secret.
fn message(error: &serde_path_to_error::Error<serde_json::Error>, value: &Value) -> String {
    let reason = error.inner().to_string();
    let Some((found, expected)) = reason.rsplit_once(", expected ") else {
        return format!("is invalid: {}", reason.chars().take(REASON).collect::<String>());
    };
    let expected = match expected {
        "a sequence" => "a list",
        "a map" => "an object",
        "a string" => "a text",
        "a boolean" => "true or false",
        "i32" | "i64" => "a whole number",
        "f64" => "a number",
        "IntOrString" => "a whole number or a text",
        "Quantity" => "a quantity, such as 500m or 1Gi",
        other => return format!("must be an object of type {other}, but is {}", ShownType(value)),
    };
    if found.starts_with("invalid value") {
        return format!("must be {expected} within the range of its field");
    }
    format!("must be {expected}, but is {}", ShownType(value))
}

/// Displays the type of a value instead of the value.
struct ShownType<'a>(&'a Value);

impl fmt::Display for ShownType<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Value::Null => "null",
            Value::Bool(_) => "true or false",
            Value::Number(_) => "a number",
            Value::String(_) => "a text",
            Value::Array(_) => "a list",
            Value::Object(_) => "an object",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origins::written;
    use serde_json::json;

    fn told(manifest: &Value) -> Vec<String> {
        misfits(manifest).iter().map(|misfit| format!("{} {}", written(&misfit.path), misfit.message)).collect()
    }

    fn deployment(pod: &Value) -> Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"template": {"spec": pod}}})
    }

    #[test]
    fn values_that_kubernetes_accepts_pass() {
        let pod = json!({
            "containers": [{
                "name": "a", "resources": {"limits": {"cpu": 2, "memory": "1Gi", "nvidia.com/gpu": 1.0}},
                "readinessProbe": {"httpGet": {"port": "http"}}, "livenessProbe": {"tcpSocket": {"port": 80}},
                "aFieldOfTomorrow": [{"x": 1}],
            }],
            "nodeSelector": null, "volumes": null,
        });
        assert_eq!(told(&deployment(&pod)), [""; 0]);
        assert_eq!(told(&json!({"apiVersion": "example.com/v1", "kind": "Deployment", "spec": 3})), [""; 0]);
    }

    #[test]
    fn a_value_of_a_wrong_type_is_reported_with_its_path_and_without_content() {
        let pod = json!({
            "volumes": "secret",
            "containers": [{"name": 7, "env": {}, "resources": {"limits": {"a.b/c": true}}}],
            "terminationGracePeriodSeconds": 1.5,
        });
        assert_eq!(
            told(&deployment(&pod)),
            [
                "spec.template.spec.containers[0].env must be a list, but is an object",
                "spec.template.spec.containers[0].name must be a text, but is a number",
                "spec.template.spec.containers[0].resources.limits[\"a.b/c\"] must be a quantity, such as 500m or \
                 1Gi, but is true or false",
                "spec.template.spec.terminationGracePeriodSeconds must be a whole number, but is a number",
                "spec.template.spec.volumes must be a list, but is a text",
            ]
        );
    }

    #[test]
    fn a_list_item_of_a_wrong_type_ends_the_search_for_misfits() {
        let pod = json!({"containers": [3, 4]});
        assert_eq!(
            told(&deployment(&pod)),
            ["spec.template.spec.containers[0] must be an object of type Container, but is a number"]
        );
    }

    #[test]
    fn invalid_base64_is_reported_with_the_parsers_message() {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "data": {"key": "%%%"}});
        let told = told(&secret);
        assert!(told.len() == 1 && told[0].starts_with("data.key "), "{told:?}");
    }
}
