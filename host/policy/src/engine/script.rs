//! Runs scripts in the script engine, which is a component that this crate contains. Each sandbox of the script engine
//! first loads a script.
//!
//! A script has no compile step. All scripts share the compiled code of the script engine.

use std::{
    io::Read as _,
    sync::{Arc, OnceLock},
};

use flate2::read::GzDecoder;
use wasmtime::component::{ComponentType, Lower};

use super::{EngineError, code::WasmCode, trap};
use crate::{
    code::{Code, Sandbox, World},
    contract::{Descriptor, EnvVar, Found, Need, Observation, Plan, Refusal, Report, Subject},
    digest::Digest,
    failure::{Failure, Verb},
    limits::Limits,
};

/// The name of a script in packages and in messages.
pub const SCRIPT: &str = "policy.js";
/// The interface that only the script engine exports.
const INTERFACE: &str = "kaos:policy/script@0.1.0";
const PACKED: &[u8] = include_bytes!("../../../../guest-policies/javascript/engine.wasm.gz");

/// The script engine that ships with this program.
#[derive(Debug)]
pub struct ScriptEngine {
    /// The component.
    pub component: Vec<u8>,
    /// The component's digest.
    pub digest: Digest,
    /// The digest of the packed component. The build finds compiled code by this digest.
    pub packed_digest: Digest,
}

impl ScriptEngine {
    /// Returns the script engine, which is unpacked at the first call.
    pub fn shipped() -> Result<&'static Self, EngineError> {
        static ENGINE: OnceLock<Result<ScriptEngine, EngineError>> = OnceLock::new();
        let unpack = || {
            let mut component = Vec::new();
            GzDecoder::new(PACKED)
                .read_to_end(&mut component)
                .map_err(|error| EngineError::Start(format!("the script engine is damaged: {error}")))?;
            Ok(Self { digest: Digest::of(&component), packed_digest: Digest::of(PACKED), component })
        };
        ENGINE.get_or_init(unpack).as_ref().map_err(Clone::clone)
    }
}

/// A script, with the compiled script engine.
pub struct ScriptCode {
    engine: Arc<WasmCode>,
    digest: Digest,
    text: String,
}

/// The record `script-source` of the contract.
#[derive(ComponentType, Lower)]
#[component(record)]
struct ScriptSource<'a> {
    file: &'a str,
    text: &'a str,
    memory: u64,
}

impl ScriptCode {
    /// Combines the code of the script engine with a script. `digest` is the digest of the script engine.
    pub(crate) fn new(engine: Arc<WasmCode>, digest: Digest, text: String) -> Self {
        Self { engine, digest, text }
    }
}

impl Code for ScriptCode {
    fn world(&self) -> World {
        World::Policy
    }

    fn bytes(&self) -> usize {
        self.text.len()
    }

    fn shared_bytes(&self) -> usize {
        self.engine.bytes()
    }

    fn script_engine(&self) -> Option<Digest> {
        Some(self.digest)
    }

    fn open(&self, limits: &Limits) -> Result<Box<dyn Sandbox + '_>, Failure> {
        let sandbox = self.engine.open_prepared(limits, |store, instance| {
            let verb = Verb::Load;
            let absent = || Failure::Sandbox(format!("the script engine does not export {INTERFACE}"));
            let interface = instance.get_export_index(&mut *store, None, INTERFACE).ok_or_else(absent)?;
            let load = instance.get_export_index(&mut *store, Some(&interface), "load").ok_or_else(absent)?;
            let load = instance
                .get_typed_func::<(ScriptSource<'_>,), (Result<(), String>,)>(&mut *store, &load)
                .map_err(|error| Failure::Sandbox(format!("{INTERFACE}: {error:#}")))?;
            let memory = store.data().memory_limit() as u64;
            let loaded = load.call(&mut *store, (ScriptSource { file: SCRIPT, text: &self.text, memory },));
            let (loaded,) = loaded.map_err(|error| trap::failure(store, limits, verb, &error))?;
            loaded.map_err(|reason| Failure::Script { verb, reason })
        });
        Ok(Box::new(ScriptSandbox(sandbox.map_err(told)?)))
    }
}

/// A sandbox that loaded a script.
struct ScriptSandbox<'a>(Box<dyn Sandbox + 'a>);

/// Converts the trap of a script to a failure of the script. When a script fails, the script engine traps. The reason
/// of such a trap begins with the position in the script.
fn told(failure: Failure) -> Failure {
    match failure {
        Failure::Trap { verb, reason } if reason.strip_prefix(SCRIPT).is_some_and(|rest| rest.starts_with(':')) => {
            Failure::Script { verb, reason }
        }
        other => other,
    }
}

impl Sandbox for ScriptSandbox<'_> {
    fn describe(&mut self) -> Result<Descriptor, Failure> {
        self.0.describe().map_err(told)
    }

    fn begin(&mut self, subject: &Subject) -> Result<(), Failure> {
        self.0.begin(subject).map_err(told)
    }

    fn needs(&mut self, found: &[Found]) -> Result<Vec<Need>, Failure> {
        self.0.needs(found).map_err(told)
    }

    fn map_env(&mut self, base: Vec<EnvVar>) -> Result<Result<Vec<EnvVar>, Refusal>, Failure> {
        self.0.map_env(base).map_err(told)
    }

    fn translate(&mut self, env: Vec<EnvVar>) -> Result<Result<Plan, Refusal>, Failure> {
        self.0.translate(env).map_err(told)
    }

    fn assess(&mut self, seen: &Observation) -> Result<Report, Failure> {
        self.0.assess(seen).map_err(told)
    }

    fn fuel_used(&self) -> u64 {
        self.0.fuel_used()
    }

    fn memory(&self) -> usize {
        self.0.memory()
    }
}
