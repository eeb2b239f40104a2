//! Runs scripts in the script engine, which is a component that this crate contains. Each sandbox of the script engine
//! first loads a script.
//!
//! A script has no compile step. All scripts share the compiled code of the script engine. `script_sandbox` answers the
//! calls of a pass.

use std::{
    io::Read as _,
    sync::{Arc, OnceLock},
};

use flate2::read::GzDecoder;

use super::{
    EngineError,
    code::{WasmCode, WasmSandbox},
    script_sandbox::{self, ScriptSandbox},
    script_start::{NotLoaded, Script},
};
use crate::{
    code::{Code, Sandbox, World},
    digest::Digest,
    failure::Failure,
    limits::Limits,
};

const PACKED: &[u8] = include_bytes!("../../../../guest-policies/javascript/engine.wasm.gz");

/// The script engine that ships with this program. The program contains the compressed component.
#[derive(Debug)]
pub struct ScriptEngine {
    /// The component's digest.
    pub digest: Digest,
    /// The digest of the compressed component. The build finds the file with the script engine's compiled code by this
    /// digest.
    pub packed_digest: Digest,
}

impl ScriptEngine {
    /// Returns the digests of the script engine. The first call computes them.
    pub fn shipped() -> Result<&'static Self, EngineError> {
        static ENGINE: OnceLock<Result<ScriptEngine, EngineError>> = OnceLock::new();
        let read = || Ok(Self { digest: Digest::of(&Self::component()?), packed_digest: Digest::of(PACKED) });
        ENGINE.get_or_init(read).as_ref().map_err(Clone::clone)
    }

    /// Unpacks the component. The program does not keep the unpacked component, because only the inspection and the
    /// compilation need it.
    pub fn component() -> Result<Vec<u8>, EngineError> {
        let mut component = Vec::new();
        GzDecoder::new(PACKED)
            .read_to_end(&mut component)
            .map_err(|error| EngineError::Start(format!("the script engine is damaged: {error}")))?;
        Ok(component)
    }
}

/// A script, with the compiled script engine.
pub struct ScriptCode {
    script: Script,
    /// The digest of the script engine.
    digest: Digest,
    world: World,
}

impl ScriptCode {
    /// Combines a script with the code of the script engine. `digest` is the digest of the script engine. Loads the
    /// script once, to find its world: the functions that the script exports show the world.
    pub(crate) fn new(engine: Arc<WasmCode>, digest: Digest, text: String, limits: &Limits) -> Result<Self, Failure> {
        let script = Script { engine, text };
        let world = open(&script, limits)?.world();
        Ok(Self { script, digest, world })
    }
}

fn open(script: &Script, limits: &Limits) -> Result<WasmSandbox, Failure> {
    script
        .start(limits, limits, 0)
        .map_err(|NotLoaded { failure, progress }| script_sandbox::placed(script, failure, progress, limits, &[]))
}

impl Code for ScriptCode {
    fn world(&self) -> World {
        self.world
    }

    fn bytes(&self) -> usize {
        self.script.text.len()
    }

    fn shared_bytes(&self) -> usize {
        self.script.engine.bytes()
    }

    fn script_engine(&self) -> Option<Digest> {
        Some(self.digest)
    }

    fn open(&self, limits: &Limits) -> Result<Box<dyn Sandbox + '_>, Failure> {
        Ok(Box::new(ScriptSandbox::new(&self.script, open(&self.script, limits)?, *limits)))
    }
}
