//! Inspects a component's bytes before compilation: version, world, imports and bounds.

mod bounds;
mod error;
mod version;
mod walk;

use serde::{Deserialize, Serialize};
use wasmparser::{
    Parser, Validator, WasmFeatures,
    component_types::{ComponentAnyTypeId, ComponentEntityType},
};

pub use self::{
    bounds::{Bounds, SizeClass},
    error::{InspectError, Part},
};
use self::{
    version::{HOST, is_draft, line},
    walk::{Walked, walk},
};
use crate::{adapter::DRAFTS, code::World, digest::Digest};

/// The version of the contract that scripts use.
const CONTRACT: &str = crate::contract::VERSION;
/// The interface that every policy exports.
const SHARED: &str = "meta";
/// The interface that policies export and overlays do not export.
const POLICY: &str = "translation";
/// The interface that only overlays export.
const OVERLAY: &str = "amendment";
/// The interface that only the script engine exports. The script engine runs policies and overlays.
const SCRIPT: &str = "script";

/// The result of inspecting a component's bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inspection {
    /// The component's digest.
    pub digest: Digest,
    /// The component's size in bytes.
    pub size: usize,
    /// The world of the component, which determines the functions that the component exports.
    pub world: World,
    /// The version of the contract that the component was built for.
    pub contract: String,
    /// The imported interfaces, which contain only types.
    pub imports: Vec<String>,
    /// The number of functions.
    pub functions: u64,
    /// The size of the largest function in bytes.
    pub largest_function: u64,
    /// The digest of the script engine that runs the code, if the code is a script.
    #[serde(default)]
    pub script_engine: Option<Digest>,
}

impl Inspection {
    /// Returns the facts of a script. A script imports nothing and has no compiled functions.
    pub(crate) fn of_script(digest: Digest, size: usize, engine: Digest) -> Self {
        Self {
            digest,
            size,
            world: World::Policy,
            contract: CONTRACT.to_owned(),
            imports: Vec::new(),
            functions: 0,
            largest_function: 0,
            script_engine: Some(engine),
        }
    }
}

/// Parses and validates a whole component without running it. Comparing large equal types can keep the validator busy
/// for hours. So the operator inspects untrusted bytes only in the compile child.
pub fn inspect(component: &[u8], bounds: &Bounds) -> Result<Inspection, InspectError> {
    form(component)?;
    let seen = walk(component, bounds)?;
    // Check the version before validation: this host may not be able to validate a policy for a newer version of the
    // contract.
    let contract = version(&seen)?;
    let types = Validator::new_with_features(features()).validate_all(component)?;
    let types = types.as_ref();
    let (mut wasi, mut others) = (Vec::new(), Vec::new());
    for name in &seen.imports {
        let only_types = types.component_item_for_import(name).is_some_and(|item| is_type(&item.ty, &types));
        if !only_types {
            if name.starts_with("wasi:") { &mut wasi } else { &mut others }.push(name.clone());
        }
    }
    if !wasi.is_empty() {
        return Err(InspectError::ImportsWasi(wasi));
    }
    if !others.is_empty() {
        return Err(InspectError::Imports(others));
    }
    Ok(Inspection {
        digest: Digest::of(component),
        size: component.len(),
        world: world(&seen)?,
        contract,
        imports: seen.imports,
        functions: seen.functions,
        largest_function: seen.largest_function,
        script_engine: None,
    })
}

/// Checks the first bytes, which show the format.
fn form(bytes: &[u8]) -> Result<(), InspectError> {
    if wasmtime::Engine::detect_precompiled(bytes).is_some() {
        return Err(InspectError::Precompiled);
    }
    if Parser::is_component(bytes) {
        return Ok(());
    }
    if Parser::is_core_wasm(bytes) {
        return Err(InspectError::CoreModule);
    }
    let text = bytes.trim_ascii_start();
    if text.starts_with(b"(") || text.starts_with(b";;") {
        return Err(InspectError::TextFormat);
    }
    Err(InspectError::NotWasm)
}

/// Returns the WebAssembly features that policies can use. The engine enables exactly these features.
fn features() -> WasmFeatures {
    WasmFeatures::WASM2
        .union(WasmFeatures::COMPONENT_MODEL)
        .union(WasmFeatures::EXTENDED_CONST)
        .union(WasmFeatures::MULTI_MEMORY)
        .union(WasmFeatures::TAIL_CALL)
}

/// Returns the version of the contract that the policy uses. Returns an error if this host does not support the
/// version.
fn version(seen: &Walked) -> Result<String, InspectError> {
    let exported = seen.interfaces().map(|(_, version)| version).next();
    let (section, exports) = match (&seen.contract, exported) {
        (None, None) => return Err(InspectError::NotAPolicy),
        (section, exports) => (section.as_deref(), exports),
    };
    let speaks = section.or(exports).unwrap_or_default();
    for version in section.into_iter().chain(seen.interfaces().map(|(_, version)| version)) {
        if line(version) != line(speaks) {
            return Err(InspectError::MixedVersions { section: speaks.to_owned(), exports: version.to_owned() });
        }
    }
    if is_draft(speaks) {
        let is_served = DRAFTS.iter().any(|(draft, _)| *draft == speaks);
        return if is_served {
            Ok(speaks.to_owned())
        } else {
            Err(InspectError::Unreleased { speaks: speaks.to_owned() })
        };
    }
    if line(speaks) != HOST {
        return Err(InspectError::WrongVersion { speaks: line(speaks).to_owned() });
    }
    Ok(speaks.to_owned())
}

fn world(seen: &Walked) -> Result<World, InspectError> {
    let has = |name: &str| seen.interfaces().any(|(interface, _)| interface == name);
    match (has(SHARED), has(POLICY), has(OVERLAY)) {
        // Scripts of both worlds run in the script engine.
        (true, true, true) if has(SCRIPT) => Ok(World::Policy),
        (true, true, false) => Ok(World::Policy),
        (true, false, true) => Ok(World::Overlay),
        (_, true, true) => Err(InspectError::TwoWorlds),
        (false, true, _) | (false, _, true) => Err(InspectError::MissingInterfaces(vec![SHARED.to_owned()])),
        (true, false, false) => Err(InspectError::MissingInterfaces(vec![POLICY.to_owned()])),
        (false, false, false) => Err(InspectError::MissingInterfaces(vec![SHARED.to_owned(), POLICY.to_owned()])),
    }
}

/// Returns whether an import contains only types. A resource is not a type here.
fn is_type(entity: &ComponentEntityType, types: &wasmparser::types::TypesRef<'_>) -> bool {
    match entity {
        ComponentEntityType::Type { created, .. } => !matches!(created, ComponentAnyTypeId::Resource(_)),
        ComponentEntityType::Instance(id) => types[*id].exports.values().all(|item| is_type(&item.ty, types)),
        _ => false,
    }
}
