//! What the activation gate tries the policy on: together they reach every part of it.

use kaos_policy_sdk::types::Sample;

pub(crate) fn samples() -> Vec<Sample> {
    let model = include_str!("../samples/modelapi.json");
    let server = include_str!("../samples/mcpserver.json");
    let peer = include_str!("../samples/peer.json");
    let registry = include_str!("../samples/registry.json");
    let sample = |name: &str, object: &str, beside: &[&str]| Sample {
        name: name.to_owned(),
        object: object.to_owned(),
        beside: beside.iter().map(|&object| object.to_owned()).collect(),
    };
    vec![
        sample("minimal", include_str!("../samples/minimal.json"), &[model]),
        sample("full", include_str!("../samples/full.json"), &[model, server, peer, registry]),
        sample("gated", include_str!("../samples/minimal.json"), &[include_str!("../samples/modelapi-unready.json")]),
        sample("peers", include_str!("../samples/peers.json"), &[model, peer]),
        sample("waiting", include_str!("../samples/minimal.json"), &[]),
    ]
}
