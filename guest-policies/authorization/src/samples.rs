//! The samples for the gate.

use alloc::{borrow::ToOwned, vec::Vec};
use kaos_policy_sdk::include_json;
use kaos_policy_sdk::types::Sample;

fn sample(name: &str, object: &str, beside: &[&str]) -> Sample {
    Sample {
        name: name.to_owned(),
        object: object.to_owned(),
        beside: beside.iter().map(|&object| object.to_owned()).collect(),
    }
}

/// Returns an AccessGrant that names its resource, and an AccessGrant that selects its resources by labels.
pub(crate) fn grants() -> Vec<Sample> {
    let projection = include_json!("../samples/projection.json");
    vec![
        sample("named", include_json!("../samples/named.json"), &[projection]),
        sample("labelled", include_json!("../samples/labelled.json"), &[projection]),
    ]
}

/// Returns an AuthorizationPolicy with objects in its namespace, and an AuthorizationPolicy without objects.
pub(crate) fn projections() -> Vec<Sample> {
    let projection = include_json!("../samples/projection.json");
    let beside = [
        include_json!("../samples/agent.json"),
        include_json!("../samples/mcpserver.json"),
        include_json!("../samples/named.json"),
        include_json!("../samples/labelled.json"),
    ];
    vec![sample("projection", projection, &beside), sample("empty", projection, &[])]
}
