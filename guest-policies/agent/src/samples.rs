//! The samples for the gate. They cover models, tools, peers, memory, a harness, a plan gate, and a missing ModelAPI.

use alloc::{borrow::ToOwned, vec::Vec};
use kaos_policy_sdk::include_json;
use kaos_policy_sdk::types::Sample;

pub(crate) fn samples() -> Vec<Sample> {
    let model = include_json!("../samples/modelapi.json");
    let server = include_json!("../samples/mcpserver.json");
    let peer = include_json!("../samples/peer.json");
    let registry = include_json!("../samples/registry.json");
    let sample = |name: &str, object: &str, beside: &[&str]| Sample {
        name: name.to_owned(),
        object: object.to_owned(),
        beside: beside.iter().map(|&object| object.to_owned()).collect(),
    };
    vec![
        sample("minimal", include_json!("../samples/minimal.json"), &[model]),
        sample("full", include_json!("../samples/full.json"), &[model, server, peer, registry]),
        sample("gated", include_json!("../samples/minimal.json"), &[include_json!("../samples/modelapi-unready.json")]),
        sample("peers", include_json!("../samples/peers.json"), &[model, peer]),
        sample(
            "remembering",
            include_json!("../samples/remembering.json"),
            &[model, include_json!("../samples/store.json")],
        ),
        sample("waiting", include_json!("../samples/minimal.json"), &[]),
    ]
}
