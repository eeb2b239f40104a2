//! Compiles, loads and instantiates components.

use std::sync::Arc;

use wasmtime::component::{Component, Linker};

use super::{EngineError, code::WasmCode, compiled::Compiled, config, state::State, ticks};
use crate::{
    adapter::Version,
    code::{Code, World},
};

/// Compiles, loads and instantiates components. A clone shares the same wasmtime engine.
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

    /// Creates an engine that only compiles. Its code runs on every machine of this architecture, because it uses only
    /// features that all processors have.
    pub fn portable() -> Result<Self, EngineError> {
        let mut config = config::compiling();
        // Set a target, even the host's own: this turns off the detection of this processor's features.
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

    /// Returns a digest of everything except the component that affects compiled code: version, machine, options.
    pub fn fingerprint(&self) -> crate::digest::Digest {
        config::fingerprint(&self.inner)
    }

    /// Loads code that [`Engine::compile`] made from a component of this world and this version of the contract.
    pub(crate) fn load(
        &self,
        compiled: &Compiled,
        world: World,
        version: Version,
    ) -> Result<Arc<dyn Code>, EngineError> {
        let component = compiled.load(&self.inner)?;
        self.link(&component, world, version)
    }

    fn link(&self, component: &Component, world: World, version: Version) -> Result<Arc<dyn Code>, EngineError> {
        let fits = |error: wasmtime::Error| EngineError::World { world: world.name(), reason: format!("{error:#}") };
        let linker: Linker<State> = Linker::new(&self.inner);
        let instance = linker.instantiate_pre(component).map_err(fits)?;
        match version {
            Version::V0_1 => Ok(Arc::new(WasmCode::new(self.inner.clone(), instance, world).map_err(fits)?)),
            #[cfg(test)]
            Version::V0_2 => Ok(Arc::new(super::draft::DraftCode::new(self.inner.clone(), instance).map_err(fits)?)),
        }
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}
