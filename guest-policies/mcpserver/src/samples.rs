//! The samples for the gate.

use alloc::{borrow::ToOwned, vec::Vec};
use kaos_policy_sdk::include_json;
use kaos_policy_sdk::types::Sample;

/// Returns two servers: one with a runtime of the sample's registry, and one with the user's own image.
pub(crate) fn samples() -> Vec<Sample> {
    let registry = include_json!("../samples/registry.json");
    let sample = |name: &str, object: &str, beside: &[&str]| Sample {
        name: name.to_owned(),
        object: object.to_owned(),
        beside: beside.iter().map(|&object| object.to_owned()).collect(),
    };
    vec![
        sample("python-string", include_json!("../samples/python-string.json"), &[registry]),
        sample("custom", include_json!("../samples/custom.json"), &[]),
    ]
}
