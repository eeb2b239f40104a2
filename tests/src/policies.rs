//! The default policies, either as native code in this process, or as the components in the operator's binary.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use anyhow::Result;
use kaos_operator::policies::Loader;
use kaos_operator::presets::Preset;
use kaos_policy::code::Native;
use kaos_policy::contract::{Cluster, ResourceType};
use kaos_policy::digest::Digest;
use kaos_policy::kubernetes::Checks;
use kaos_policy::limits::Limits;
use kaos_policy::manifest::PolicyFile;
use kaos_policy::native_code;
use kaos_policy::policy::{Policy, Stack};
use kaos_policy::render::Renderer;
use kaos_policy::settings::{Layer, Origin};

use crate::case::Case;

/// Returns the default policies as native code, each with its `policy.yaml`.
fn natives() -> [(Native, &'static str); 5] {
    [
        (native_code!(kaos_policy_sdk, kaos_agent::Agent), include_str!("../../guest-policies/agent/policy.yaml")),
        (
            native_code!(kaos_policy_sdk, kaos_authorization::Authorization),
            include_str!("../../guest-policies/authorization/policy.yaml"),
        ),
        (
            native_code!(kaos_policy_sdk, kaos_mcpserver::McpServer),
            include_str!("../../guest-policies/mcpserver/policy.yaml"),
        ),
        (
            native_code!(kaos_policy_sdk, kaos_memorystore::MemoryStore),
            include_str!("../../guest-policies/memorystore/policy.yaml"),
        ),
        (
            native_code!(kaos_policy_sdk, kaos_modelapi::ModelApi),
            include_str!("../../guest-policies/modelapi/policy.yaml"),
        ),
    ]
}

/// Returns the default policies as native code.
pub fn native() -> Result<Vec<Arc<Policy>>> {
    native_reading(&[])
}

/// Returns the default policies as native code. These policies can read objects in `namespaces` when they answer for an
/// object in the operator's namespace.
pub fn native_reading(namespaces: &[&str]) -> Result<Vec<Arc<Policy>>> {
    let admit = |(code, text): (Native, &str)| {
        let mut file = PolicyFile::parse(text)?;
        file.grants.namespaces.extend(namespaces.iter().map(|&namespace| namespace.to_owned()));
        let policy = Policy::admit(Arc::new(code), Digest::of(text.as_bytes()), &file, Limits::default())?;
        Ok(Arc::new(policy))
    };
    natives().into_iter().map(admit).collect()
}

/// Returns the default policies as components that passed the gate. Compiles each component once per process.
pub fn wasm() -> Result<Vec<Arc<Policy>>> {
    static COMPILED: OnceLock<Vec<Arc<Policy>>> = OnceLock::new();
    if let Some(compiled) = COMPILED.get() {
        return Ok(compiled.clone());
    }
    let loaded = Loader::new(Cluster::default())?.load(&[])?;
    let compiled = loaded.into_iter().map(|loaded| loaded.policy).collect();
    Ok(COMPILED.get_or_init(|| compiled).clone())
}

/// The preset for the version of KAOS with which the cases were recorded.
const RECORDED_WITH: &str = "kaos-0.1";

/// Returns a renderer for each kind, with the environment of a case and the preset `RECORDED_WITH`.
pub fn renderers(policies: &[Arc<Policy>], case: &Case) -> Result<BTreeMap<String, Renderer>> {
    let mut layers = Preset::named(RECORDED_WITH)?.layers();
    layers.push(Layer::env(Origin::Environment, case.environment.clone()));
    renderers_with(policies, &layers)
}

/// Returns a renderer for each kind, with these settings, for a cluster that serves HTTPRoutes.
pub fn renderers_with(policies: &[Arc<Policy>], layers: &[Layer]) -> Result<BTreeMap<String, Renderer>> {
    renderers_serving(policies, layers, &[])
}

/// Returns a renderer for each kind, with these settings, for a cluster that serves HTTPRoutes and the types `further`.
pub fn renderers_serving(
    policies: &[Arc<Policy>],
    layers: &[Layer],
    further: &[ResourceType],
) -> Result<BTreeMap<String, Renderer>> {
    let routes = ResourceType::new("gateway.networking.k8s.io/v1", "HTTPRoute");
    let served = [&[routes], further].concat();
    let cluster = Cluster { served, ..Cluster::default() };
    let mut renderers = BTreeMap::new();
    for policy in policies {
        for claim in &policy.descriptor().claims {
            let stack = Stack::single(Arc::clone(policy))?;
            let renderer = Renderer::new(&stack, layers, cluster.clone())?.with_checks(Checks::Fields);
            renderers.insert(claim.primary.kind.clone(), renderer);
        }
    }
    Ok(renderers)
}
