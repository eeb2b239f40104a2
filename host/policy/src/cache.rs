//! Caches compiled code on disk for later runs of the command line. Each entry has a tag: a keyed hash of the code, of
//! the component's digest and of the engine's fingerprint. Only the user who runs the command line can read the key.
//! The cache treats an entry without a valid tag as missing.

use std::{
    fs::{self, DirBuilder, Metadata, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::SystemTime,
};

use crate::{digest::Digest, engine::Compiled};

/// The length of the authentication tag after the compiled code, in bytes.
const TAG: usize = blake3::OUT_LEN;
/// The length of a key in bytes.
const KEY: usize = blake3::KEY_LEN;
/// The maximum number of entries. Above this number, the cache removes the least recently used entries.
const MAX_ENTRIES: usize = 64;

/// A directory of compiled components.
pub struct Cache {
    directory: PathBuf,
    key: [u8; KEY],
    written: AtomicU64,
}

impl Cache {
    /// Opens the cache in a directory, and creates the directory if it is missing. Returns an error if another user can
    /// read or write the directory or its key. Such a user could replace an entry, and this program would run the
    /// replaced code.
    pub fn open(directory: PathBuf) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
        private(&fs::metadata(&directory)?)?;
        let key = key(&directory)?;
        Ok(Self { directory, key, written: AtomicU64::new(0) })
    }

    /// Loads the code of a component, if the entry exists and is authentic.
    pub(crate) fn load(&self, component: &Digest, engine: &Digest) -> Option<Compiled> {
        let path = self.file(component, engine);
        let mut file = fs::File::open(&path).ok()?;
        let code = file.metadata().ok()?.len().checked_sub(TAG as u64)?;
        let ours = self.tag(component, engine, (&mut file).take(code)).ok()?;
        let mut tag = [0; TAG];
        file.read_exact(&mut tag).ok()?;
        // Comparing two `blake3` hashes takes constant time.
        if ours != tag {
            return None;
        }
        // Store the time of this use. If the file system does not store the time, the cache removes the entry earlier.
        let _ = file.set_modified(SystemTime::now());
        Some(Compiled::from_authenticated_cache(path))
    }

    /// Stores the code of a component. Another process sees either the whole entry or no entry.
    pub(crate) fn store(&self, component: &Digest, engine: &Digest, code: &[u8]) -> io::Result<()> {
        let tag = self.tag(component, engine, code)?;
        let number = self.written.fetch_add(1, Ordering::Relaxed);
        let temporary = self.directory.join(format!(".{}-{}-{number}", component.short(), std::process::id()));
        let stored = fs::File::create(&temporary)
            .and_then(|mut file| file.write_all(code).and_then(|()| file.write_all(tag.as_bytes())))
            // Replace the entry instead of writing in place: a process that has mapped the entry keeps the old content.
            .and_then(|()| fs::rename(&temporary, self.file(component, engine)));
        stored.inspect_err(|_| drop(fs::remove_file(&temporary)))?;
        self.forget()
    }

    /// Removes the least recently used entries if the directory has too many entries. Other processes can remove
    /// entries at the same time.
    fn forget(&self) -> io::Result<()> {
        let mut entries: Vec<(SystemTime, PathBuf)> = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let entry = entry?;
            if entry.file_name() != KEY_FILE
                && let Some(metadata) = if_there(entry.metadata())?
            {
                entries.push((metadata.modified()?, entry.path()));
            }
        }
        entries.sort_unstable();
        let too_many = entries.len().saturating_sub(MAX_ENTRIES);
        entries.iter().take(too_many).try_for_each(|(_, path)| if_there(fs::remove_file(path)).map(drop))
    }

    fn file(&self, component: &Digest, engine: &Digest) -> PathBuf {
        self.directory.join(Path::new(&format!("{}-{}.code", component.hex(), engine.short())))
    }

    fn tag(&self, component: &Digest, engine: &Digest, code: impl Read) -> io::Result<blake3::Hash> {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(component.bytes()).update(engine.bytes()).update_reader(code)?;
        Ok(hasher.finalize())
    }
}

/// Returns the result of a file operation; `None` if the file does not exist.
fn if_there<T>(done: io::Result<T>) -> io::Result<Option<T>> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        done => done.map(Some),
    }
}

/// The name of the file with the key.
const KEY_FILE: &str = "key";

/// Returns the key of a directory, and creates the key if it is missing. If two processes create a key at the same
/// time, both processes use the first key.
fn key(directory: &Path) -> io::Result<[u8; KEY]> {
    let path = directory.join(KEY_FILE);
    if !path.exists() {
        let mut new = [0; KEY];
        fs::File::open("/dev/urandom")?.read_exact(&mut new)?;
        let temporary = directory.join(format!(".{KEY_FILE}-{}", std::process::id()));
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
        let linked = file.write_all(&new).and_then(|()| fs::hard_link(&temporary, &path));
        fs::remove_file(&temporary)?;
        linked.or_else(|error| if error.kind() == io::ErrorKind::AlreadyExists { Ok(()) } else { Err(error) })?;
    }
    let mut file = fs::File::open(&path)?;
    private(&file.metadata()?)?;
    let mut key = [0; KEY];
    // A file that is too short for a key is an error.
    file.read_exact(&mut key).map_err(|_| io::ErrorKind::InvalidData)?;
    Ok(key)
}

/// Returns an error if another user owns the file, or has the right to read or write the file.
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_entry_whose_last_use_is_longest_ago_is_removed_first() {
        let directory = std::env::temp_dir().join(format!("kaos-cache-{}", std::process::id()));
        let cache = Cache::open(directory.clone()).unwrap();
        let engine = Digest::of(b"engine");
        let component = |number: usize| Digest::of(number.to_string().as_bytes());
        let store = |number: usize| cache.store(&component(number), &engine, b"code").unwrap();
        let is_there = |number: usize| cache.load(&component(number), &engine).is_some();
        let long_ago = SystemTime::now() - Duration::from_hours(1);
        for number in 0..MAX_ENTRIES {
            store(number);
            let entry = fs::File::open(cache.file(&component(number), &engine)).unwrap();
            entry.set_modified(long_ago + Duration::from_secs(number as u64)).unwrap();
        }
        assert!(is_there(0));
        store(MAX_ENTRIES);
        assert_eq!([0, 1, 2, MAX_ENTRIES].map(is_there), [true, false, true, true]);
        fs::remove_dir_all(directory).unwrap();
    }
}
