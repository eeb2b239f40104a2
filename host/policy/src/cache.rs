//! Compiled code kept on disk. An entry counts only if it was written under the operator's own key for this
//! very component and engine; everything else is as if it were not there.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::{digest::Digest, engine::Compiled};

/// Bytes of the authentication code before the compiled code.
const TAG: usize = 32;

/// A directory of compiled components.
pub struct Cache {
    directory: PathBuf,
    key: Vec<u8>,
    written: AtomicU64,
}

impl Cache {
    /// A cache in a directory, which is made if it is missing. The key must be known to this operator alone.
    pub fn new(directory: PathBuf, key: &[u8]) -> io::Result<Self> {
        fs::create_dir_all(&directory)?;
        Ok(Self { directory, key: key.to_vec(), written: AtomicU64::new(0) })
    }

    /// The code of a component, if it is there and authentic.
    pub(crate) fn load(&self, component: &Digest, engine: &Digest) -> Option<Compiled> {
        let bytes = fs::read(self.file(component, engine)).ok()?;
        let (tag, code) = bytes.split_at_checked(TAG)?;
        self.mac(component, engine, code)?.verify_slice(tag).ok()?;
        Some(Compiled::from_authenticated_cache(code.to_vec()))
    }

    /// Keeps the code of a component. A reader sees all of it or nothing.
    pub(crate) fn store(&self, component: &Digest, engine: &Digest, code: &Compiled) -> io::Result<()> {
        let Some(mac) = self.mac(component, engine, code.bytes()) else { return Ok(()) };
        let mut bytes = mac.finalize().into_bytes().to_vec();
        bytes.extend_from_slice(code.bytes());
        let number = self.written.fetch_add(1, Ordering::Relaxed);
        let temporary = self.directory.join(format!(".{}-{}-{number}", component.short(), std::process::id()));
        fs::write(&temporary, bytes)?;
        fs::rename(&temporary, self.file(component, engine)).inspect_err(|_| drop(fs::remove_file(&temporary)))
    }

    fn file(&self, component: &Digest, engine: &Digest) -> PathBuf {
        self.directory.join(Path::new(&format!("{}-{}.code", component.hex(), engine.short())))
    }

    fn mac(&self, component: &Digest, engine: &Digest, code: &[u8]) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).ok()?;
        for part in [&component.bytes()[..], &engine.bytes()[..], code] {
            mac.update(part);
        }
        Some(mac)
    }
}

impl std::fmt::Debug for Cache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cache").field("directory", &self.directory).finish_non_exhaustive()
    }
}
