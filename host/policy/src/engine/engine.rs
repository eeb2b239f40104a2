//! Compiles, loads and instantiates components.

use std::sync::Arc;

use wasmtime::component::{Component, Linker};

use super::{EngineError, code::WasmCode, compiled::Compiled, config, state::State, ticks};
use crate::{code::Code, inspect::Inspection};

/// Compiles, loads and instantiates components. All clones share one wasmtime engine.
#[derive(Clone)]
pub struct Engine {
    pub(super) inner: wasmtime::Engine,
}

impl Engine {
    /// Creates an engine that runs policies. Reserves memory for a fixed number of sandboxes.
    pub fn new() -> Result<Self, EngineError> {
        let engine = Self::with(&config::running())?;
        ticks::start(&engine.inner)
            .map_err(|error| EngineError::Start(format!("cannot start a thread for its clock: {error}")))?;
        Ok(engine)
    }

    /// The maximum number of sandboxes that can be open at the same time.
    pub const SANDBOXES: usize = config::SANDBOXES as usize;

    /// Advances the engine's count of ticks. A sandbox ends after too many ticks. A thread of the engine calls this
    /// function at long intervals.
    pub fn tick(&self) {
        self.inner.increment_epoch();
    }

    /// Creates an engine that only compiles and reserves no memory.
    pub fn compiling() -> Result<Self, EngineError> {
        Self::with(&config::compiling())
    }

    /// Creates an engine that only compiles. The compiled code runs on every machine of this architecture, because the
    /// code uses only features that all processors have.
    pub fn portable() -> Result<Self, EngineError> {
        let mut config = config::compiling();
        // Set a target, although the target is this machine: with a target, wasmtime does not detect the features of
        // this processor.
        let system = if cfg!(target_os = "macos") { "darwin" } else { std::env::consts::OS };
        let target = format!("{}-unknown-{system}", std::env::consts::ARCH);
        config.target(&target).map_err(|error| EngineError::Start(format!("{target}: {error:#}")))?;
        Self::with(&config)
    }

    fn with(config: &wasmtime::Config) -> Result<Self, EngineError> {
        let inner = wasmtime::Engine::new(config).map_err(|error| EngineError::Start(format!("{error:#}")))?;
        Ok(Self { inner })
    }

    /// Compiles a component to code that every [`Engine`] of the same version and machine can load.
    pub fn compile(&self, component: &[u8]) -> Result<Vec<u8>, EngineError> {
        self.inner.precompile_component(component).map_err(|error| EngineError::Compile(format!("{error:#}")))
    }

    /// Returns a digest of all inputs of the compilation except the component: version, machine and options.
    pub fn fingerprint(&self) -> crate::digest::Digest {
        config::fingerprint(&self.inner)
    }

    /// Loads code that [`Engine::compile`] made. The inspection of the component chooses the contract and the world.
    pub(crate) fn load(&self, compiled: &Compiled, inspection: &Inspection) -> Result<Arc<dyn Code>, EngineError> {
        let component = compiled.load(&self.inner)?;
        self.link(&component, inspection)
    }

    fn link(&self, component: &Component, inspection: &Inspection) -> Result<Arc<dyn Code>, EngineError> {
        let world = inspection.world;
        let fits = |error: wasmtime::Error| EngineError::World { world: world.name(), reason: format!("{error:#}") };
        let linker: Linker<State> = Linker::new(&self.inner);
        let instance = linker.instantiate_pre(component).map_err(fits)?;
        #[cfg(test)]
        if inspection.contract == crate::adapter::v0_2::VERSION {
            return Ok(Arc::new(super::draft::DraftCode::new(self.inner.clone(), instance).map_err(fits)?));
        }
        Ok(Arc::new(WasmCode::new(self.inner.clone(), instance, world).map_err(fits)?))
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}
