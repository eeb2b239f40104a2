//! Compiled code kept on disk, for the next short run of the command line. An entry counts only if it was written under
//! the key of whoever runs this, for this very component and engine; everything else is as if it were not there.

use std::{
    fs::{self, DirBuilder, Metadata, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::SystemTime,
};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::{digest::Digest, engine::Compiled};

/// Bytes of the authentication code behind the compiled code.
const TAG: usize = 32;
/// Bytes of a key.
const KEY: usize = 32;
/// Entries that are kept; the oldest go first.
const MOST: usize = 32;

/// A directory of compiled components.
pub struct Cache {
    directory: PathBuf,
    key: Vec<u8>,
    written: AtomicU64,
}

impl Cache {
    /// A cache in a directory, which is made if it is missing. It and the key in it must be this user's alone, to read
    /// and to write: who can write there can have code run.
    pub fn open(directory: PathBuf) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
        private(&fs::metadata(&directory)?)?;
        let key = key(&directory)?;
        Ok(Self { directory, key, written: AtomicU64::new(0) })
    }

    /// The code of a component, if it is there and authentic.
    pub(crate) fn load(&self, component: &Digest, engine: &Digest) -> Option<Compiled> {
        let mut code = fs::read(self.file(component, engine)).ok()?;
        let tag = code.split_off(code.len().checked_sub(TAG)?);
        self.mac(component, engine, &code)?.verify_slice(&tag).ok()?;
        Some(Compiled::from_authenticated_cache(code))
    }

    /// Keeps the code of a component. A reader sees all of it or nothing.
    pub(crate) fn store(&self, component: &Digest, engine: &Digest, code: &Compiled) -> io::Result<()> {
        let Some(mac) = self.mac(component, engine, code.bytes()) else { return Ok(()) };
        let mut bytes = code.bytes().to_vec();
        bytes.extend_from_slice(&mac.finalize().into_bytes());
        let number = self.written.fetch_add(1, Ordering::Relaxed);
        let temporary = self.directory.join(format!(".{}-{}-{number}", component.short(), std::process::id()));
        fs::write(&temporary, bytes)?;
        fs::rename(&temporary, self.file(component, engine)).inspect_err(|_| drop(fs::remove_file(&temporary)))?;
        self.forget()
    }

    /// Removes what is too much: code of policies and engines that are used no more.
    fn forget(&self) -> io::Result<()> {
        let mut entries: Vec<(SystemTime, PathBuf)> = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let entry = entry?;
            if entry.file_name() != KEY_FILE {
                entries.push((entry.metadata()?.modified()?, entry.path()));
            }
        }
        entries.sort_unstable();
        let too_many = entries.len().saturating_sub(MOST);
        entries.iter().take(too_many).try_for_each(|(_, path)| fs::remove_file(path))
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

/// The name of the file with the key.
const KEY_FILE: &str = "key";

/// The key of a directory. Of two that make one at the same time, the first wins.
fn key(directory: &Path) -> io::Result<Vec<u8>> {
    let path = directory.join(KEY_FILE);
    if !path.exists() {
        let mut new = [0; KEY];
        fs::File::open("/dev/urandom")?.read_exact(&mut new)?;
        let temporary = directory.join(format!(".{KEY_FILE}-{}", std::process::id()));
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
        file.write_all(&new)?;
        let linked = fs::hard_link(&temporary, &path);
        fs::remove_file(&temporary)?;
        linked.or_else(|error| if error.kind() == io::ErrorKind::AlreadyExists { Ok(()) } else { Err(error) })?;
    }
    let file = fs::File::open(&path)?;
    private(&file.metadata()?)?;
    let mut key = Vec::new();
    file.take(KEY as u64).read_to_end(&mut key)?;
    if key.len() == KEY { Ok(key) } else { Err(io::ErrorKind::InvalidData.into()) }
}

/// Refuses what others may read or write.
fn private(of: &Metadata) -> io::Result<()> {
    const OTHERS: u32 = 0o077;
    let is_ours = of.uid() == rustix::process::geteuid().as_raw() && of.mode() & OTHERS == 0;
    if is_ours { Ok(()) } else { Err(io::ErrorKind::PermissionDenied.into()) }
}

impl std::fmt::Debug for Cache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cache").field("directory", &self.directory).finish_non_exhaustive()
    }
}
