//! Loading compiled code: the only unsafe code of this crate.
//!
//! Compiled code is machine code, and wasmtime checks it only lightly: whoever makes the bytes decides what
//! this process does. So the bytes come from two places alone, and [`Compiled`] can be made by nothing else
//! than the functions that name them:
//!
//! - the compile step ([`crate::compile`]), which runs this same binary on a component that the gate
//!   validated, over a pipe that nobody else writes to;
//! - the cache ([`crate::cache`]) of the command line, whose entries carry an HMAC over these very bytes under a key
//!   that nobody but the user can read or write, over the component's digest and over the engine's fingerprint, checked on
//!   the bytes in memory.
//!
//! Bytes of a ConfigMap, a file or a flag never become a [`Compiled`]; the gate refuses compiled code as
//! input before anything else is done with it. wasmtime itself refuses code of another version or of other
//! options.
#![allow(unsafe_code)]

use wasmtime::component::Component;

use super::EngineError;

/// Compiled code of a trusted origin.
pub(crate) struct Compiled(Vec<u8>);

impl Compiled {
    /// What the compile step handed over.
    pub(crate) fn from_compile_step(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// What the cache found authentic.
    pub(crate) fn from_authenticated_cache(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn load(&self, engine: &wasmtime::Engine) -> Result<Component, EngineError> {
        // SAFETY: by the module's argument, `self.0` was made by `Engine::compile` of this binary and was
        // not changed since.
        let loaded = unsafe { Component::deserialize(engine, &self.0) };
        loaded.map_err(|error| EngineError::Precompiled(format!("{error:#}")))
    }
}
