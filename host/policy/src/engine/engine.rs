//! Compiles, loads and instantiates components.

use std::sync::{Arc, OnceLock};

use wasmtime::component::{Component, InstancePre, Linker};

use super::{EngineError, code::WasmCode, compiled::Compiled, config, state::State, ticks};
use crate::{
    adapter::Version,
    code::{Code, World},
};

/// Compiles, loads and instantiates components. All clones share one wasmtime engine.
#[derive(Clone)]
pub struct Engine {
    pub(super) inner: wasmtime::Engine,
    /// The code of the script engine, which all scripts share. Empty until the first script is loaded.
    pub(crate) scripts: Arc<OnceLock<Arc<WasmCode>>>,
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

    /// Advances the engine's count of ticks. A thread of the engine also advances the count, at long intervals. A
    /// sandbox ends after too many ticks.
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
        // Set this machine as the target explicitly. Otherwise, wasmtime would use the features of this processor.
        let system = if cfg!(target_os = "macos") { "darwin" } else { std::env::consts::OS };
        let target = format!("{}-unknown-{system}", std::env::consts::ARCH);
        config.target(&target).map_err(|error| EngineError::Start(format!("{target}: {error:#}")))?;
        Self::with(&config)
    }

    fn with(config: &wasmtime::Config) -> Result<Self, EngineError> {
        let inner = wasmtime::Engine::new(config).map_err(|error| EngineError::Start(format!("{error:#}")))?;
        Ok(Self { inner, scripts: Arc::default() })
    }

    /// Compiles a component to code that every [`Engine`] of the same version and machine can load.
    pub fn compile(&self, component: &[u8]) -> Result<Vec<u8>, EngineError> {
        self.inner.precompile_component(component).map_err(|error| EngineError::Compile(format!("{error:#}")))
    }

    /// Returns a digest of all inputs of the compilation except the component: version, machine and options.
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

    /// Loads code of a released contract.
    pub(crate) fn load_component(&self, compiled: &Compiled, world: World) -> Result<WasmCode, EngineError> {
        let component = compiled.load(&self.inner)?;
        let instance = self.linked(&component, world)?;
        WasmCode::new(self.inner.clone(), instance, world).map_err(unfit(world))
    }

    fn link(&self, component: &Component, world: World, version: Version) -> Result<Arc<dyn Code>, EngineError> {
        let instance = self.linked(component, world)?;
        match version {
            Version::V0_1 => Ok(Arc::new(WasmCode::new(self.inner.clone(), instance, world).map_err(unfit(world))?)),
            #[cfg(test)]
            Version::V0_2 => {
                Ok(Arc::new(super::draft::DraftCode::new(self.inner.clone(), instance).map_err(unfit(world))?))
            }
        }
    }

    fn linked(&self, component: &Component, world: World) -> Result<InstancePre<State>, EngineError> {
        let linker: Linker<State> = Linker::new(&self.inner);
        linker.instantiate_pre(component).map_err(unfit(world))
    }
}

/// Returns the error for a component that does not export its world.
fn unfit(world: World) -> impl Fn(wasmtime::Error) -> EngineError {
    move |error| EngineError::World { world: world.name(), reason: format!("{error:#}") }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}
