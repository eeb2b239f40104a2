//! Reads a package from ConfigMaps: first the index, then one chunk after the other. Reading stops at the first error.

use std::borrow::Borrow;

use k8s_openapi::api::core::v1::ConfigMap;
use kaos_policy::{digest::Digest, gate::unpacked, manifest::PolicyFile};

use super::{
    CHUNKS, Package, PackageError, PolicyCode, Problem,
    read::{chunk_names, file, keys, part, settings_alone, whole},
    readable, shown,
};

/// Returns the package of an index. The function `chunk` returns the ConfigMap of a given name in the same namespace.
pub fn unpack<C: Borrow<ConfigMap>>(
    index: &ConfigMap,
    chunk: impl Fn(&str) -> Option<C>,
) -> Result<Package, PackageError> {
    let mut unpacking = Unpacking::of(index)?;
    while let Some(found) = unpacking.awaits().and_then(&chunk) {
        unpacking.add(found.borrow())?;
    }
    unpacking.package()
}

/// Like [`unpack`], but the function `chunk` reads each ConfigMap asynchronously, and can fail.
pub async fn unpack_reading<C, E, F>(
    index: &ConfigMap,
    chunk: impl Fn(String) -> F,
) -> Result<Result<Package, PackageError>, E>
where
    C: Borrow<ConfigMap>,
    F: Future<Output = Result<Option<C>, E>>,
{
    let mut unpacking = match Unpacking::of(index) {
        Ok(unpacking) => unpacking,
        Err(error) => return Ok(Err(error)),
    };
    while let Some(name) = unpacking.awaits() {
        let Some(found) = chunk(name.to_owned()).await? else { break };
        if let Err(error) = unpacking.add(found.borrow()) {
            return Ok(Err(error));
        }
    }
    Ok(unpacking.package())
}

/// A package whose index has been read, and to which the caller still adds the chunks.
struct Unpacking<'a> {
    index: &'a ConfigMap,
    file: PolicyFile,
    /// The chunks of the component; `None` if the component is not in chunks.
    chunks: Option<ReadChunks>,
}

/// The chunks of a component that the reader has read so far.
struct ReadChunks {
    names: Vec<String>,
    /// The number of chunks that the reader has read.
    added: usize,
    bytes: Vec<u8>,
    /// The digest that the policy file pins.
    wanted: Digest,
}

impl<'a> Unpacking<'a> {
    /// Reads the index.
    fn of(index: &'a ConfigMap) -> Result<Self, PackageError> {
        let wrong = |problem| PackageError::new(shown(index), problem);
        keys(index).map_err(wrong)?;
        let file = file(index).map_err(wrong)?;
        let names = chunk_names(index)?;
        let chunks = if names.is_empty() {
            None
        } else {
            let wanted = file.sha256.ok_or_else(|| wrong(Problem::NotPinned))?;
            Some(ReadChunks { names, added: 0, bytes: Vec::new(), wanted })
        };
        Ok(Self { index, file, chunks })
    }

    /// Returns the name of the next chunk; `None` after the last chunk.
    fn awaits(&self) -> Option<&str> {
        self.chunks.as_ref()?.awaited()
    }

    /// Adds the next chunk.
    fn add(&mut self, chunk: &ConfigMap) -> Result<(), PackageError> {
        let Some(chunks) = &mut self.chunks else { return Ok(()) };
        let part = part(self.index, chunk).map_err(|problem| PackageError::new(shown(chunk), problem))?;
        chunks.bytes.extend_from_slice(part);
        chunks.added += 1;
        let (bytes, limit) = (chunks.bytes.len(), readable().bytes);
        if bytes > limit {
            let remedy = "strip debug information and build with opt-level s";
            let problem = Problem::TooLarge { key: CHUNKS, bytes, limit, remedy };
            return Err(PackageError::new(shown(self.index), problem));
        }
        Ok(())
    }

    /// Returns the package. The caller must have added all chunks.
    fn package(self) -> Result<Package, PackageError> {
        let Self { index, file, chunks } = self;
        let wrong = |problem| PackageError::new(shown(index), problem);
        let component = match chunks {
            Some(chunks) => Some(PolicyCode::component(chunks.joined().map_err(wrong)?)),
            None => whole(index).map_err(wrong)?,
        };
        if component.is_none() {
            settings_alone(&file).map_err(wrong)?;
        }
        let metadata = &index.metadata;
        Ok(Package {
            name: metadata.name.clone().unwrap_or_default(),
            namespace: metadata.namespace.clone().unwrap_or_default(),
            file,
            component,
        })
    }
}

impl ReadChunks {
    fn awaited(&self) -> Option<&str> {
        self.names.get(self.added).map(String::as_str)
    }

    /// Joins the chunks, and checks the pinned digest.
    fn joined(self) -> Result<Vec<u8>, Problem> {
        if let Some(name) = self.awaited() {
            let (number, count) = (self.added + 1, self.names.len());
            return Err(Problem::MissingChunk { name: name.to_owned(), number, count });
        }
        let Self { bytes, wanted, .. } = self;
        if Digest::of(&bytes) == wanted {
            return Ok(bytes);
        }
        // The policy file can also pin the digest of the unpacked component. If the bytes are damaged and cannot be
        // unpacked, report the digest of the bytes themselves.
        let found =
            unpacked(&bytes, &readable()).map_or_else(|_| Digest::of(&bytes), |component| Digest::of(&component));
        if found == wanted { Ok(bytes) } else { Err(Problem::OtherChunks { found, wanted }) }
    }
}
