//! Compiles each component only once in this process, so that all operators of all tests share the compiled code.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use kaos_policy::compile::{Compilation, Compile, CompileError, InProcessCompiler, Order};
use kaos_policy::digest::Digest;
use kaos_policy::engine::Engine;
use kaos_policy::gate::Bounds;

/// The results of compilations with the default limits.
static COMPILED: LazyLock<Mutex<HashMap<Digest, Compilation>>> = LazyLock::new(Mutex::default);

/// A compiler in this process. All operators of the process can share compiled code, because their engines accept the
/// same code.
pub(super) struct Once(InProcessCompiler);

impl Once {
    pub(super) fn new(engine: Engine) -> Self {
        Self(InProcessCompiler(engine))
    }
}

impl Compile for Once {
    fn compile(&self, order: &Order<'_>) -> Result<Compilation, CompileError> {
        if order.bounds != Bounds::default() {
            return self.0.compile(order);
        }
        let compiled = || COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
        let digest = Digest::of(order.component);
        if let Some(found) = compiled().get(&digest) {
            return Ok(found.clone());
        }
        let made = self.0.compile(order)?;
        compiled().insert(digest, made.clone());
        Ok(made)
    }
}
