//! Loads compiled code. This file contains the only unsafe code of this crate, apart from the constructor of
//! [`super::BuiltIn`].
//!
//! Compiled code is machine code, and wasmtime checks only a little of it. So the author of the bytes could control
//! this process. For this reason, the bytes come from only three sources. Each source has one function that creates a
//! [`Compiled`]:
//!
//! - The compile step ([`crate::compile`]). The compile step runs this binary on a component that the inspection
//!   accepted. The step reads the code from a pipe to which no other process writes.
//! - The cache ([`crate::cache`]) of the command line. Each entry carries a keyed hash of its bytes, of the component's
//!   digest and of the engine's fingerprint. Only the user can read the key. The cache verifies the hash before
//!   wasmtime maps the entry into memory. After the verification, only the user can replace the entry, and the user
//!   could replace this program as well.
//! - This program's own file ([`super::BuiltIn`]). One step of the build compiles the code, and a later step includes
//!   it in the file.
//!
//! Bytes of a ConfigMap, a file or a flag never become a [`Compiled`]: the inspection refuses compiled code before any
//! other check. wasmtime itself checks only the first number of its version, and not every option. The engine's
//! fingerprint covers the whole version and all options. The host stores the fingerprint with code that another process
//! will load.
#![allow(unsafe_code)]

use std::path::PathBuf;

use wasmtime::component::Component;

use super::EngineError;

/// Compiled code from a trusted source.
pub(crate) struct Compiled(CodeOrigin);

enum CodeOrigin {
    CompileStep(Vec<u8>),
    Cache(PathBuf),
    Build(Vec<u8>),
}

impl Compiled {
    /// Takes the code from the compile step.
    pub(crate) fn from_compile_step(code: Vec<u8>) -> Self {
        Self(CodeOrigin::CompileStep(code))
    }

    /// Takes a cache entry. The caller has verified the hash of the entry.
    pub(crate) fn from_authenticated_cache(entry: PathBuf) -> Self {
        Self(CodeOrigin::Cache(entry))
    }

    /// Takes the code from this program's own file.
    pub(super) fn from_build(code: Vec<u8>) -> Self {
        Self(CodeOrigin::Build(code))
    }

    pub(super) fn load(&self, engine: &wasmtime::Engine) -> Result<Component, EngineError> {
        // SAFETY: the module's documentation shows that `Engine::compile` made this code and that no other program
        // changed it since.
        let loaded = unsafe {
            match &self.0 {
                CodeOrigin::CompileStep(code) | CodeOrigin::Build(code) => Component::deserialize(engine, code),
                CodeOrigin::Cache(entry) => Component::deserialize_file(engine, entry),
            }
        };
        loaded.map_err(|error| EngineError::Precompiled(format!("{error:#}")))
    }
}
