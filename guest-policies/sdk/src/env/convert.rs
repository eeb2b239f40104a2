//! Between the mapping and the `env` arrays of Kubernetes.

use crate::types::{EnvVar, Refusal};
use serde_json::Value;

/// The `env` array of one container.
pub fn to_json(vars: &[EnvVar], container: &str) -> Vec<Value> {
    let _ = (vars, container);
    Vec::new()
}

/// The variables in an `env` array that stands at `path` of the object; entry `i` gets the origin
/// `path[i]`. Of entries with the same name the last one holds, as in Kubernetes.
pub fn from_json(container: &str, list: &[Value], path: &str) -> Result<Vec<EnvVar>, Refusal> {
    let _ = (container, list, path);
    Ok(Vec::new())
}

/// The final mapping as a pod spec carries it after all merges, init containers included. A variable that
/// is as in `known` keeps its origin; any other came from the patch and gets the origin `patched`, for
/// example `spec.podSpec`.
pub fn of_pod_spec(pod_spec: &Value, known: &[EnvVar], patched: &str) -> Result<Vec<EnvVar>, Refusal> {
    let _ = (pod_spec, known, patched);
    Ok(Vec::new())
}
