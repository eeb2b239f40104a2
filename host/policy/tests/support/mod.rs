//! Components for the tests. One component is written in Rust, and misbehaves in the way that a test selects. This
//! module generates the other components from the text of a world.
#![allow(dead_code)]

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, OnceLock},
};

use kaos_policy::{
    clock::{Clock, SystemClock},
    compile::InProcessCompiler,
    contract::{Cluster, ResourceType},
    engine::Engine,
    gate::{AtOnce, Bounds, Candidate, Check, Gate, KnownServer, LoadError, Turns},
    limits::Limits,
    policy::Policy,
};
use wit_component::{ComponentEncoder, StringEncoding, dummy_module, embed_component_metadata};
use wit_parser::{ManglingAndAbi, Resolve};

pub(crate) const WIT: &str = include_str!("../../../../wit/policy.wit");
const MARK: &[u8] = b"MODE=";
const MODE: usize = 35;

/// Returns the hostile component's core module. Builds the module only once in each test run.
fn hostile_module() -> &'static [u8] {
    static MODULE: OnceLock<Vec<u8>> = OnceLock::new();
    MODULE.get_or_init(|| {
        let guest = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/guests/hostile");
        let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("guests");
        let status = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--release", "--target", "wasm32-unknown-unknown", "--target-dir"])
            .arg(&target)
            .current_dir(guest)
            .env_remove("CARGO_TARGET_DIR")
            .env_remove("RUSTFLAGS")
            .status()
            .unwrap();
        assert!(status.success(), "the guest does not build: is the target wasm32-unknown-unknown installed?");
        std::fs::read(target.join("wasm32-unknown-unknown/release/hostile.wasm")).unwrap()
    })
}

/// Returns the hostile component with one misbehavior.
pub(crate) fn hostile(mode: &str) -> Vec<u8> {
    let mut module = hostile_module().to_vec();
    let at = module.windows(MARK.len()).position(|window| window == MARK).expect("the guest has a mode") + MARK.len();
    let padded = format!("{mode:MODE$}");
    assert_eq!(padded.len(), MODE, "the mode is too long");
    module[at..at + MODE].copy_from_slice(padded.as_bytes());
    encode(&module)
}

pub(crate) fn encode(module: &[u8]) -> Vec<u8> {
    ComponentEncoder::default().module(module).unwrap().validate(true).encode().unwrap()
}

/// Returns a component for a world in WIT text. All functions of the component trap. `section` is the content of the
/// component's custom section with the version.
pub(crate) fn dummy(wit: &str, world: &str, section: Option<&str>) -> Vec<u8> {
    let mut resolve = Resolve::default();
    let package = resolve.push_str("policy.wit", wit).unwrap();
    let world = resolve.select_world(&[package], Some(world)).unwrap();
    let mut module = dummy_module(&resolve, world, ManglingAndAbi::Standard32);
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
    if let Some(version) = section {
        let section = wasm_encoder::CustomSection { name: "kaos:policy".into(), data: version.as_bytes().into() };
        wasm_encoder::Section::append_to(&section, &mut module);
    }
    encode(&module)
}

/// Returns the engine that all tests share, because each engine reserves much address space.
pub(crate) fn engine() -> &'static Engine {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    ENGINE.get_or_init(|| Engine::new().unwrap())
}

pub(crate) fn limits() -> Limits {
    Limits::default()
}

/// Loads a policy from bytes. Compiles the bytes in this process.
pub(crate) fn load(bytes: Vec<u8>) -> Result<Arc<Policy>, LoadError> {
    load_with(&Candidate { bytes, ..Candidate::default() })
}

pub(crate) fn load_with(candidate: &Candidate) -> Result<Arc<Policy>, LoadError> {
    check(candidate, limits()).result
}

/// Checks a candidate under these limits, and returns every step.
pub(crate) fn check(candidate: &Candidate, limits: Limits) -> Check {
    check_beside(candidate, limits, &[])
}

/// Checks a candidate for a cluster that serves these kinds.
pub(crate) fn check_beside(candidate: &Candidate, limits: Limits, kinds: &[ResourceType]) -> Check {
    check_on(engine(), candidate, limits, kinds)
}

/// Checks a candidate with this engine.
pub(crate) fn check_on(engine: &Engine, candidate: &Candidate, limits: Limits, kinds: &[ResourceType]) -> Check {
    check_by(&AtOnce, engine, candidate, limits, kinds)
}

/// Checks a candidate with this implementation of turns.
pub(crate) fn check_by(
    turns: &dyn Turns,
    engine: &Engine,
    candidate: &Candidate,
    limits: Limits,
    kinds: &[ResourceType],
) -> Check {
    let compiler = InProcessCompiler(engine.clone());
    let clock: &dyn Clock = &SystemClock::start();
    let gate = Gate {
        engine,
        compiler: &compiler,
        built_in: &[],
        script_engine: None,
        cache: None,
        bounds: Bounds::default(),
        limits,
        kinds,
        cluster: Cluster::default(),
        clock,
        turns,
        server: &KnownServer::default(),
    };
    gate.check(candidate)
}

/// Returns a component that looks like a policy, takes a few kilobytes packed, and keeps a validator busy for a very
/// long time. The component passes a type with a million parts to each of `instances` instances. All these types are
/// equal, and the validator compares each type in full.
pub(crate) fn endless_types(instances: usize) -> Vec<u8> {
    let fields = |of: &str| (0..990).map(|n| format!("(field \"f{n}\" {of})")).collect::<Vec<_>>().concat();
    let text = format!(
        "(component
            (type $small (record {small})) (type $large (record {large}))
            (component $compares
                (type $s (record {small})) (import \"s\" (type $small (eq $s)))
                (type $l (record {large})) (import \"l\" (type (eq $l))))
            {instances})",
        small = fields("u8"),
        large = fields("$small"),
        instances = "(instance (instantiate $compares (with \"s\" (type $small)) (with \"l\" (type $large))))"
            .repeat(instances),
    );
    let mut component = wat::parse_str(text).unwrap();
    let version = wasm_encoder::CustomSection { name: "kaos:policy".into(), data: b"0.1.0".into() };
    wasm_encoder::Section::append_to(&version, &mut component);
    component
}
