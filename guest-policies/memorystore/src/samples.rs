//! The samples for the gate.

use alloc::{borrow::ToOwned, vec::Vec};
use kaos_policy_sdk::include_json;
use kaos_policy_sdk::types::Sample;

/// Returns one store for each type of storage, a store with an existing volume claim, and a store that waits.
pub(crate) fn samples() -> Vec<Sample> {
    let model = include_json!("../samples/modelapi.json");
    let local = include_json!("../samples/local.json");
    let sample = |name: &str, object: &str, beside: &[&str]| Sample {
        name: name.to_owned(),
        object: object.to_owned(),
        beside: beside.iter().map(|&object| object.to_owned()).collect(),
    };
    vec![
        sample("local", local, &[model]),
        sample("external", include_json!("../samples/external.json"), &[model]),
        sample("grown", local, &[model, include_json!("../samples/claim.json")]),
        sample("waiting", local, &[]),
    ]
}
