//! The functions that the fuzz targets in `tests/fuzz` call.
//!
//! `cargo test` also calls these functions with the inputs in `tests/fuzz/corpus`.

use kaos_policy::gate::{Bounds, Inspection, LoadError, inspect, unpacked};
use kaos_policy_sdk::patch::{self, Schema};
use serde_json::Value;

/// Decompresses any bytes, and inspects them as a component, but does not compile them. Returns the result or a typed
/// error.
///
/// # Panics
/// If the bytes break an invariant.
pub fn loader(data: &[u8]) -> Result<Inspection, LoadError> {
    let bounds = Bounds::default();
    let inspected = unpacked(data, &bounds).and_then(|component| Ok(inspect(&component, &bounds)?));
    if let Err(error) = &inspected {
        assert!(!error.to_string().is_empty());
    }
    inspected
}

/// Reads two lines of JSON as a base and a patch, and merges them. If the merged value is an object, an empty patch
/// must not change this object: otherwise the merge would have left a directive or a null in the object.
///
/// # Panics
/// If the data break an invariant.
pub fn patch(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap_or(Value::Null));
    let (base, change) = (lines.next().unwrap_or(Value::Null), lines.next().unwrap_or(Value::Null));
    for schema in [Schema::PodSpec, Schema::Container, Schema::Deployment, Schema::Service, Schema::Plain] {
        if let Ok(merged @ Value::Object(_)) = patch::merge(base.clone(), &change, schema) {
            assert_eq!(
                patch::merge(merged.clone(), &Value::Object(serde_json::Map::new()), schema).as_ref(),
                Ok(&merged)
            );
        }
    }
    let _ = patch::pod_spec(base.clone(), &change, "main");
    let _ = patch::container(base, &change);
}
