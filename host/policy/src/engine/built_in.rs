//! Compiled code of components that the build included in this program's file.
#![allow(unsafe_code)]

use std::io::{Read as _, Write as _};

use flate2::{Compression, read::GzDecoder, write::GzEncoder};

use super::{Compiled, Engine, EngineError};
use crate::digest::Digest;

/// Compiled code of a built-in component: the fingerprint of the engine that compiled it, and then the code, packed
/// with gzip. Once the program reads a page of its file, the page takes memory. Packed code has a third of the size, so
/// it saves memory.
#[derive(Debug, Clone, Copy)]
pub struct BuiltIn {
    component: Digest,
    made: &'static [u8],
}

impl BuiltIn {
    /// Compiles a component, so that a build can include the code. The code runs on every machine of this architecture.
    pub fn make(component: &[u8]) -> Result<Vec<u8>, EngineError> {
        let engine = Engine::portable()?;
        let code = engine.compile(component)?;
        let mut packed = GzEncoder::new(engine.fingerprint().bytes().to_vec(), Compression::best());
        packed
            .write_all(&code)
            .and_then(|()| packed.finish())
            .map_err(|error| EngineError::Precompiled(error.to_string()))
    }

    /// Declares that `made` is the compiled code of the component with the digest `component`.
    ///
    /// # Safety
    ///
    /// The bytes must be the result of [`BuiltIn::make`] for that component, and the build must have included the bytes
    /// in this program. Bytes that the program read at run time are not allowed.
    pub const unsafe fn new(component: Digest, made: &'static [u8]) -> Self {
        Self { component, made }
    }

    /// Checks that the engine accepts the code. The engine rejects code that another version of wasmtime or other
    /// options produced, and code that uses features that this processor does not have.
    pub fn fits(self, engine: &Engine) -> Result<(), EngineError> {
        self.unpacked()?.load(&engine.inner).map(drop)
    }

    /// Returns the code if it was compiled from this component.
    pub(crate) fn of(self, component: &Digest) -> Option<Compiled> {
        if self.component == *component { self.unpacked().ok() } else { None }
    }

    fn unpacked(self) -> Result<Compiled, EngineError> {
        let of_another = |why: &str| EngineError::Precompiled(why.to_owned());
        let (maker, packed) = self.made.split_first_chunk().ok_or_else(|| of_another("the code is cut off"))?;
        // Compare the whole fingerprint: wasmtime itself compares only the first number of its version, and only some
        // options.
        if Engine::portable()?.fingerprint().bytes() != maker {
            return Err(of_another("another version of the engine compiled the code, or used other options"));
        }
        let mut code = Vec::new();
        GzDecoder::new(packed).read_to_end(&mut code).map_err(|error| of_another(&error.to_string()))?;
        Ok(Compiled::from_build(code))
    }
}
