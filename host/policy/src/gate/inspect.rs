//! A component as its bytes show it, before anything of it is compiled: version, world, imports, bounds.

use serde::Serialize;
use wasmparser::{
    ComponentExternalKind, Encoding, Parser, Payload, Validator, WasmFeatures,
    component_types::{ComponentAnyTypeId, ComponentEntityType},
};

use super::LoadError;
use crate::{code::World, digest::Digest};

/// The version that this host speaks. Within it only the last number may differ.
const HOST: &str = "0.1";
/// The custom section that says which version a policy speaks.
const SECTION: &str = "kaos:policy";
/// What only a policy exports, and what an overlay exports too.
const SHARED: [&str; 3] = ["meta", "inputs", "environment"];
const POLICY_ONLY: [&str; 2] = ["translation", "status"];

/// Bounds of a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes, packed and unpacked.
    pub bytes: usize,
    /// Bytes of one function; compiling takes longer than the size grows.
    pub function_bytes: u64,
    /// Functions in all modules.
    pub functions: u64,
    /// Modules and components within.
    pub parts: u64,
    /// Types in all modules and components.
    pub types: u64,
    /// Data and element segments.
    pub segments: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            bytes: 8 << 20,
            function_bytes: 128 << 10,
            functions: 50_000,
            parts: 64,
            types: 50_000,
            segments: 20_000,
        }
    }
}

/// What a component's bytes show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Inspection {
    /// Of the component.
    pub digest: Digest,
    /// Its bytes.
    pub size: usize,
    /// Which functions it exports.
    pub world: World,
    /// The version of the contract that it speaks.
    pub contract: String,
    /// What it imports: types, by interface.
    pub imports: Vec<String>,
    /// Its functions.
    pub functions: u64,
    /// The bytes of its largest function.
    pub largest_function: u64,
}

/// What was counted and collected along the way.
#[derive(Default)]
struct Seen {
    depth: usize,
    contract: Option<String>,
    imports: Vec<String>,
    exports: Vec<String>,
    functions: u64,
    largest_function: u64,
    parts: u64,
    types: u64,
    segments: u64,
}

/// Parses and validates a whole component, and takes from it what can be told without running it.
pub fn inspect(component: &[u8], bounds: &Bounds) -> Result<Inspection, LoadError> {
    form(component)?;
    let seen = walk(component, bounds)?;
    // Versions come before validity: an older host cannot tell what a newer policy is made of.
    let contract = version(&seen)?;
    let types = Validator::new_with_features(features()).validate_all(component).map_err(|error| malformed(&error))?;
    let types = types.as_ref();
    let (mut wasi, mut others) = (Vec::new(), Vec::new());
    for name in &seen.imports {
        let only_types = types.component_item_for_import(name).is_some_and(|item| is_type(&item.ty, &types));
        if !only_types {
            if name.starts_with("wasi:") { &mut wasi } else { &mut others }.push(name.clone());
        }
    }
    if !wasi.is_empty() {
        return Err(LoadError::ImportsWasi(wasi));
    }
    if !others.is_empty() {
        return Err(LoadError::Imports(others));
    }
    Ok(Inspection {
        digest: Digest::of(component),
        size: component.len(),
        world: world(&seen)?,
        contract,
        imports: seen.imports,
        functions: seen.functions,
        largest_function: seen.largest_function,
    })
}

/// What the first bytes say.
fn form(bytes: &[u8]) -> Result<(), LoadError> {
    if wasmtime::Engine::detect_precompiled(bytes).is_some() {
        return Err(LoadError::Precompiled);
    }
    if Parser::is_component(bytes) {
        return Ok(());
    }
    if Parser::is_core_wasm(bytes) {
        return Err(LoadError::CoreModule);
    }
    let text = bytes.trim_ascii_start();
    if text.starts_with(b"(") || text.starts_with(b";;") {
        return Err(LoadError::TextFormat);
    }
    Err(LoadError::NotWasm)
}

/// What policies may use of WebAssembly: what the engine has switched on, and nothing else.
fn features() -> WasmFeatures {
    WasmFeatures::WASM2.union(WasmFeatures::COMPONENT_MODEL).union(WasmFeatures::EXTENDED_CONST)
}

fn walk(component: &[u8], bounds: &Bounds) -> Result<Seen, LoadError> {
    let mut seen = Seen::default();
    for payload in Parser::new(0).parse_all(component) {
        seen.payload(&payload.map_err(|error| malformed(&error))?, bounds)?;
        for (what, count, limit) in [
            ("functions", seen.functions, bounds.functions),
            ("modules and components", seen.parts, bounds.parts),
            ("types", seen.types, bounds.types),
            ("segments", seen.segments, bounds.segments),
        ] {
            if count > limit {
                return Err(LoadError::TooMany { what, count, limit });
            }
        }
    }
    Ok(seen)
}

impl Seen {
    fn payload(&mut self, payload: &Payload<'_>, bounds: &Bounds) -> Result<(), LoadError> {
        match payload {
            Payload::Version { encoding, .. } => {
                self.depth += 1;
                self.parts += 1;
                if self.depth == 1 && *encoding == Encoding::Module {
                    return Err(LoadError::CoreModule);
                }
            }
            Payload::End(_) => self.depth = self.depth.saturating_sub(1),
            Payload::CustomSection(section) if section.name() == SECTION => {
                self.contract = Some(String::from_utf8_lossy(section.data()).trim().to_owned());
            }
            Payload::TypeSection(section) => self.types += u64::from(section.count()),
            Payload::ComponentTypeSection(section) => self.types += u64::from(section.count()),
            Payload::CoreTypeSection(section) => self.types += u64::from(section.count()),
            Payload::DataSection(section) => self.segments += u64::from(section.count()),
            Payload::ElementSection(section) => self.segments += u64::from(section.count()),
            Payload::CodeSectionEntry(body) => {
                let bytes = (body.range().end - body.range().start) as u64;
                if bytes > bounds.function_bytes {
                    let index = u32::try_from(self.functions).unwrap_or(u32::MAX);
                    return Err(LoadError::FunctionTooLarge { index, bytes, limit: bounds.function_bytes });
                }
                self.functions += 1;
                self.largest_function = self.largest_function.max(bytes);
            }
            Payload::ComponentImportSection(section) if self.depth == 1 => {
                for import in section.clone() {
                    self.imports.push(import.map_err(|error| malformed(&error))?.name.name.to_owned());
                }
            }
            Payload::ComponentExportSection(section) if self.depth == 1 => {
                for export in section.clone() {
                    let export = export.map_err(|error| malformed(&error))?;
                    if export.kind == ComponentExternalKind::Instance {
                        self.exports.push(export.name.name.to_owned());
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Each interface of the contract that is exported, and its version.
    fn interfaces(&self) -> impl Iterator<Item = (&str, &str)> {
        self.exports.iter().filter_map(|name| name.strip_prefix("kaos:policy/")?.split_once('@'))
    }
}

/// The version that the policy speaks, which is the host's.
fn version(seen: &Seen) -> Result<String, LoadError> {
    let exported = seen.interfaces().map(|(_, version)| version).next();
    let (section, exports) = match (&seen.contract, exported) {
        (None, None) => return Err(LoadError::NotAPolicy),
        (section, exports) => (section.as_deref(), exports),
    };
    let speaks = section.or(exports).unwrap_or_default();
    for version in section.into_iter().chain(seen.interfaces().map(|(_, version)| version)) {
        if minor(version) != minor(speaks) {
            return Err(LoadError::MixedVersions { section: speaks.to_owned(), exports: version.to_owned() });
        }
    }
    if minor(speaks) != HOST {
        return Err(LoadError::WrongVersion { speaks: minor(speaks).to_owned(), host: HOST });
    }
    Ok(speaks.to_owned())
}

/// The first two numbers of a version.
fn minor(version: &str) -> &str {
    version.rsplit_once('.').map_or(version, |(minor, _)| minor)
}

fn world(seen: &Seen) -> Result<World, LoadError> {
    let has = |name: &&str| seen.interfaces().any(|(interface, _)| interface == *name);
    let missing = |names: &[&str]| -> Vec<String> {
        names.iter().filter(|name| !has(name)).map(|name| (*name).to_owned()).collect()
    };
    let (shared, own) = (missing(&SHARED), missing(&POLICY_ONLY));
    match (shared.is_empty(), own.len()) {
        (true, 0) => Ok(World::Policy),
        (true, 2) => Ok(World::EnvironmentOverlay),
        _ => Err(LoadError::MissingInterfaces([shared, own].concat())),
    }
}

/// Whether an import brings types and nothing else; a resource is more than a type.
fn is_type(entity: &ComponentEntityType, types: &wasmparser::types::TypesRef<'_>) -> bool {
    match entity {
        ComponentEntityType::Type { created, .. } => !matches!(created, ComponentAnyTypeId::Resource(_)),
        ComponentEntityType::Instance(id) => types[*id].exports.values().all(|item| is_type(&item.ty, types)),
        _ => false,
    }
}

fn malformed(error: &wasmparser::BinaryReaderError) -> LoadError {
    LoadError::Malformed { reason: error.message().to_owned(), offset: error.offset() as u64 }
}
