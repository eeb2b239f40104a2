//! The samples for the gate.

use alloc::{borrow::ToOwned, vec::Vec};
use kaos_policy_sdk::include_json;
use kaos_policy_sdk::types::Sample;

/// Returns one object of each mode, and an object with the user's own configuration file.
pub(crate) fn samples() -> Vec<Sample> {
    let sample = |name: &str, object: &str, beside: &[&str]| Sample {
        name: name.to_owned(),
        object: object.to_owned(),
        beside: beside.iter().map(|&object| object.to_owned()).collect(),
    };
    vec![
        sample("proxy", include_json!("../samples/proxy.json"), &[include_json!("../samples/keys.json")]),
        sample("hosted", include_json!("../samples/hosted.json"), &[]),
        sample("own-config", include_json!("../samples/own-config.json"), &[]),
    ]
}
