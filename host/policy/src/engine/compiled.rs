//! Loading compiled code: the only unsafe code of this crate, beside the promise that [`super::BuiltIn`] asks for.
//!
//! Compiled code is machine code, and wasmtime checks it only lightly: whoever makes the bytes decides what
//! this process does. So the bytes come from three places alone, and [`Compiled`] can be made by nothing else
//! than the functions that name them:
//!
//! - the compile step ([`crate::compile`]), which runs this same binary on a component that the gate
//!   validated, over a pipe that nobody else writes to;
//! - the cache ([`crate::cache`]) of the command line, whose entries carry a keyed hash of these very bytes, of the
//!   component's digest and of the engine's fingerprint, under a key that nobody but the user can read. An entry is mapped
//!   into memory after it was found authentic; nobody but the user can put another in its place, and who can do that can
//!   as well exchange this program;
//! - this program's own file ([`super::BuiltIn`]): its build included what an earlier step of that build had compiled.
//!
//! Bytes of a ConfigMap, a file or a flag never become a [`Compiled`]; the gate refuses compiled code as
//! input before anything else is done with it. wasmtime itself looks at the first number of the version that made it, and at most
//! options; the fingerprint of the engine has them all, and goes with what is kept for another process.
#![allow(unsafe_code)]

use std::path::PathBuf;

use wasmtime::component::Component;

use super::EngineError;

/// Compiled code of a trusted origin.
pub(crate) struct Compiled(Origin);

enum Origin {
    CompileStep(Vec<u8>),
    Cache(PathBuf),
    Build(Vec<u8>),
}

impl Compiled {
    /// What the compile step handed over.
    pub(crate) fn from_compile_step(code: Vec<u8>) -> Self {
        Self(Origin::CompileStep(code))
    }

    /// The entry that the cache found authentic.
    pub(crate) fn from_authenticated_cache(entry: PathBuf) -> Self {
        Self(Origin::Cache(entry))
    }

    /// What this program's own file has.
    pub(super) fn from_build(code: Vec<u8>) -> Self {
        Self(Origin::Build(code))
    }

    pub(super) fn load(&self, engine: &wasmtime::Engine) -> Result<Component, EngineError> {
        // SAFETY: by the module's argument, this code was made by `Engine::compile` of these sources and was not changed
        // since.
        let loaded = unsafe {
            match &self.0 {
                Origin::CompileStep(code) | Origin::Build(code) => Component::deserialize(engine, code),
                Origin::Cache(entry) => Component::deserialize_file(engine, entry),
            }
        };
        loaded.map_err(|error| EngineError::Precompiled(format!("{error:#}")))
    }
}
