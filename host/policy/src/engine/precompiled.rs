//! Loading compiled code: the only unsafe code of this crate.
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
//! - this program's own file ([`BuiltIn`]): its build included what an earlier step of that build had compiled.
//!
//! Bytes of a ConfigMap, a file or a flag never become a [`Compiled`]; the gate refuses compiled code as
//! input before anything else is done with it. wasmtime itself looks at the first number of the version that made it, and at most
//! options; the fingerprint of the engine has them all, and goes with what is kept for another process.
#![allow(unsafe_code)]

use std::{
    io::{Read as _, Write as _},
    path::PathBuf,
};

use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use wasmtime::component::Component;

use super::{Engine, EngineError};
use crate::digest::Digest;

/// Compiled code of a component that is part of this program, as the component is: a fingerprint of the engine that made
/// it, and the code, packed with gzip. Pages of the program that nobody reads take no memory, and unpacked the code is three
/// times as many.
#[derive(Debug, Clone, Copy)]
pub struct BuiltIn {
    component: Digest,
    made: &'static [u8],
}

impl BuiltIn {
    /// What a build takes in to make one of, for every machine of this architecture.
    pub fn make(component: &[u8]) -> Result<Vec<u8>, EngineError> {
        let engine = Engine::portable()?;
        let code = engine.compile(component)?;
        let mut packed = GzEncoder::new(engine.fingerprint().bytes().to_vec(), Compression::best());
        packed
            .write_all(&code)
            .and_then(|()| packed.finish())
            .map_err(|error| EngineError::Precompiled(error.to_string()))
    }

    /// Code of the component with this digest.
    ///
    /// # Safety
    ///
    /// [`BuiltIn::make`] made the bytes from that component, and they came into this program with its build, not while it
    /// runs.
    pub const unsafe fn new(component: Digest, made: &'static [u8]) -> Self {
        Self { component, made }
    }

    /// Whether the engine takes it: one of another version or with other options does not, nor does a processor that lacks
    /// what it uses.
    pub fn fits(self, engine: &Engine) -> Result<(), EngineError> {
        self.unpacked()?.load(&engine.inner).map(drop)
    }

    /// The code, for a component that it was made from.
    pub(crate) fn of(self, component: &Digest) -> Option<Compiled> {
        if self.component == *component { self.unpacked().ok() } else { None }
    }

    fn unpacked(self) -> Result<Compiled, EngineError> {
        let of_another = |why: &str| EngineError::Precompiled(why.to_owned());
        let (maker, packed) = self.made.split_first_chunk().ok_or_else(|| of_another("it is cut off"))?;
        // wasmtime compares less: of its own version the first number, and not every option.
        if Engine::portable()?.fingerprint().bytes() != maker {
            return Err(of_another("it was made by another version, or with other options"));
        }
        let mut code = Vec::new();
        GzDecoder::new(packed).read_to_end(&mut code).map_err(|error| of_another(&error.to_string()))?;
        Ok(Compiled(Origin::Build(code)))
    }
}

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
