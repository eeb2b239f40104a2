//! Compiled code of components that came into this program with its build.
#![allow(unsafe_code)]

use std::io::{Read as _, Write as _};

use flate2::{Compression, read::GzDecoder, write::GzEncoder};

use super::{Compiled, Engine, EngineError};
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
        Ok(Compiled::from_build(code))
    }
}
