//! Writes the types of the contract into a core module without types, because the conversion to a component needs the
//! types.

use anyhow::bail;
use wit_component::{StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

use crate::cli::policy::wasm;

/// The contract.
pub(in crate::cli::policy) const CONTRACT: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../wit/policy.wit"));

/// Each world, with the interface that only this world exports.
const WORLDS: [(&str, &str); 2] = [("policy", "kaos:policy/translation@"), ("overlay", "kaos:policy/amendment@")];

/// Writes the types of the world whose interfaces the module exports.
pub(super) fn embed(module: &mut Vec<u8>) -> anyhow::Result<()> {
    let exports = wasm::exports(module);
    let has = |interface: &str| exports.iter().any(|name| name.starts_with(interface));
    let Some((world, _)) = WORLDS.iter().find(|(_, interface)| has(interface)) else {
        bail!(
            "exports no contract: in Rust, pass your type to kaos_policy_sdk::export_policy! or export_overlay!; in \
             Go, pass your policy to policy.Export, and build with -buildmode=c-shared"
        );
    };
    let mut resolve = Resolve::default();
    let package = resolve.push_str("policy.wit", CONTRACT)?;
    let world = resolve.select_world(&[package], Some(world))?;
    embed_component_metadata(module, &resolve, world, StringEncoding::UTF8)
}
