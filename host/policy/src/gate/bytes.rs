//! Checks the size and the digest of a policy's bytes before any other step reads these bytes.

use std::io::Read;

use flate2::read::MultiGzDecoder;

use super::{Bounds, LoadError};
use crate::{digest::Digest, engine::SCRIPT};

const GZIP: [u8; 2] = [0x1f, 0x8b];

pub(super) fn size(bytes: &[u8], bounds: &Bounds) -> Result<(), LoadError> {
    if bytes.len() > bounds.bytes {
        return Err(LoadError::TooLarge { bytes: bytes.len(), limit: bounds.bytes });
    }
    Ok(())
}

/// Returns the text of a script.
pub(super) fn script<'a>(bytes: &'a [u8], bounds: &Bounds) -> Result<&'a str, LoadError> {
    let (size, limit) = (bytes.len(), bounds.script_bytes);
    if size > limit {
        return Err(LoadError::Script(format!(
            "{SCRIPT}:1:1: the script has {size} bytes, but the limit is {limit}: remove code that the policy does \
             not use"
        )));
    }
    std::str::from_utf8(bytes).map_err(|error| {
        let line = bytes[..error.valid_up_to()].split(|byte| *byte == b'\n').count();
        LoadError::Script(format!("{SCRIPT}:{line}:1: the script is not UTF-8 text: save it as UTF-8"))
    })
}

/// Returns the component, unpacked if it is gzipped. Reads no more bytes than the limit allows.
pub fn decompress(bytes: &[u8], bounds: &Bounds) -> Result<Vec<u8>, LoadError> {
    if !bytes.starts_with(&GZIP) {
        return Ok(bytes.to_vec());
    }
    let mut component = Vec::new();
    let limit = bounds.bytes;
    MultiGzDecoder::new(bytes)
        .take(limit as u64 + 1)
        .read_to_end(&mut component)
        .map_err(|error| LoadError::BadGzip(error.to_string()))?;
    if component.len() > limit {
        return Err(LoadError::UnpacksTooLarge { limit });
    }
    Ok(component)
}

/// Returns the component's digest. `pin` is the digest of the component, or the digest of the packed bytes.
pub(super) fn digest(component: &[u8], packed: &[u8], pin: Option<Digest>) -> Result<Digest, LoadError> {
    let found = Digest::of(component);
    match pin {
        Some(wanted) if wanted != found && wanted != Digest::of(packed) => {
            Err(LoadError::WrongDigest { found, wanted })
        }
        _ => Ok(found),
    }
}
